"""Questions in languages without spaces between words, and with rich endings, are answered from memory."""

from datetime import date

import pytest

from answers import ask_language, share_right
from ricordo.language import content_words, detect_language
from ricordo.search.bm25 import TermStatistics
from ricordo.search.documents import query_words
from ricordo.search.query_context import DateRange, core_words, find_date_ranges, named_words

FLOORS = {"de": (0.85, 1.0), "ja": (0.95, 0.8), "ru": (0.82, 0.9), "zh": (0.92, 0.9)}
"""The least share of right answers to what was said, and of silence to what nobody said."""


@pytest.mark.anyio
@pytest.mark.parametrize("language", FLOORS)
async def test_questions_of_each_language_are_answered_and_what_nobody_said_is_not(language: str) -> None:
    told = await ask_language(language)
    said, never_said = FLOORS[language]
    wrong = [(row.question, row.answer.text) for row in told if not row.is_right]
    assert share_right(told, said=True) >= said, wrong
    assert share_right(told, said=False) >= never_said, wrong


def strong_words(text: str) -> list[str]:
    """Return the words of a query that are no weak evidence."""
    words = query_words(text)
    return [word for word, weight in zip(words.words, words.weights, strict=True) if weight == 1]


def test_pairs_of_characters_count_inside_content_words_only() -> None:
    assert strong_words("谁负责支付模块？") == ["负责", "责支", "支付", "付模", "模块"]
    assert strong_words("E1207 是什么意思？") == ["e1207"]
    assert strong_words("決済機能の担当は誰ですか？") == ["決済", "済機", "機能", "担当"]
    assert strong_words("田中さんはどこに住んでいますか？") == ["田中", "住ん"]


def test_a_pair_that_only_lies_between_two_words_is_not_absent() -> None:
    words = query_words("支付模块")
    known = TermStatistics(frequencies={"支付": 1, "模块": 1})
    assert known.weigh(words).absent_words == ()
    assert known.weigh(words).weights[words.words.index("付模")] == 0
    assert TermStatistics(frequencies={"支付": 1}).weigh(words).absent_words == ("模块",)
    assert TermStatistics(frequencies={}).weigh(words).absent_words == ("支付", "模块")
    katakana = query_words("メッセージ")
    assert len(TermStatistics(frequencies={"ージ": 1}).weigh(katakana).absent_words) == len(katakana.words) - 1


def test_the_time_of_a_question_is_neither_a_name_nor_what_is_asked_for() -> None:
    assert core_words("How often did the server tick in November 2025?", ()) == {"server", "tick"}
    assert named_words("What did Ann say on 12 March 2026?") == {"ann"}
    assert core_words("2026 年 3 月发版？", ()) == {"发版"}
    assert find_date_ranges("2026 年 3 月", date(2026, 6, 1)) == (
        DateRange(first=date(2026, 3, 1), last=date(2026, 3, 31)),
    )


def test_russian_is_told_by_its_script_and_its_endings_and_grammar_are_left_out() -> None:
    assert detect_language("сервер") == "ru"
    assert len(set(content_words("сервер серверу серверах сервера"))) == 1
    assert query_words("Кто отвечает за платежи?").words == ("отвечает", "платежи")
    assert core_words("Где живёт Марина?", ()) == {"живёт"}


def test_names_are_told_in_german_by_two_words_and_in_japanese_by_a_title() -> None:
    assert named_words("Wie lautet die Telefonnummer von Anke Dreyer?") == {"anke", "dreyer"}
    assert core_words("Welche Datenbank nutzt die Produktion?", ()) == {"datenbank", "produktion", "nutzt"}
    assert named_words("佐藤さんの電話番号は何番ですか？") == {"佐藤"}
