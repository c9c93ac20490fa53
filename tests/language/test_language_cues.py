"""Speech acts."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.language import LANGUAGES, Act, Language, blank_quotes, detect_acts, is_correction


@pytest.mark.parametrize(
    ("sentence", "act"),
    [
        ("We decided to use SQLite.", "decision"),
        ("Never run migrations on Friday.", "convention"),
        ("I prefer tabs.", "preference"),
        ("It turned out to be the cache.", "lesson"),
        ("I want to learn Italian.", "goal"),
        ("Remember that staging is read-only.", "remember"),
        ("Where does it live?", "question"),
        ("Thanks a lot!", "thanks"),
        ("Let me check that first.", "offer"),
        ("You're so talented!", "praise"),
        ("That's really cool!", "reaction"),
        ("Wir haben uns entschieden.", "decision"),
        ("J'adore le thé.", "preference"),
        ("Me gusta el té.", "preference"),
        ("Non usare mai npm.", "convention"),
        ("Decidimos usar o Rust.", "decision"),
        ("我喜欢喝茶。", "preference"),
        ("必ずテストしてください。", "convention"),
        ("Branches are named after the ticket.", "convention"),
        ("We're moving the queue to NATS.", "decision"),
        ("What fixed it: a longer timeout.", "lesson"),
        ("No, not 8080.", "denial"),
        ("Nein, nicht der.", "denial"),
        ("Non, pas celui-là.", "denial"),
        ("What I said on Monday no longer holds.", "denial"),
        ("I suspect the cache.", "doubt"),
        ("Some house rules:", "heading"),
        ("Unsere Regeln:", "heading"),
        ("Put it in the attic.", "moment"),
        ("Don't push yet.", "moment"),
        ("Schau dir das bitte an.", "moment"),
        ("看一下这个日志。", "moment"),
    ],
)
def test_a_sentence_gives_its_act_away(sentence: str, act: Act) -> None:
    assert act in detect_acts(sentence)


@pytest.mark.req("DF-B11")
@pytest.mark.parametrize(
    "text",
    [
        "No, we use Postgres.",
        "That's wrong, the port is 9090.",
        "Nein, wir nehmen Tabs.",
        "Non, en fait c'est Postgres.",
        "Eso es incorrecto.",
        "Non è corretto.",
        "Isso está errado.",
        "不对，用空格。",
        "違います、タブです。",
        "Nee, dat klopt niet.",
        "To nieprawda.",
        "Это неверно.",
        "Nej, det är fel.",
        "Bu yanlış.",
        "아니요, 탭이 아니라 공백입니다.",
    ],
)
def test_a_correction_is_heard_in_many_languages(text: str) -> None:
    assert is_correction(text)


@pytest.mark.req("DF-B11")
@pytest.mark.parametrize(
    "text",
    [
        "IBM cloud",
        "add retry: try again after 5 s",
        "对不对？",
        'The button says "no, that is wrong".',
        "The `that's wrong` branch is covered.",
        "That's right.",
        "I'm done.",
        "Nothing is wrong here.",
    ],
)
def test_look_alikes_are_no_corrections(text: str) -> None:
    assert not is_correction(text)


@pytest.mark.req("DF-B11")
def test_quoted_text_is_blanked_in_place() -> None:
    assert blank_quotes('say "never" now') == "say         now"
    assert "convention" not in detect_acts('He typed "never push" twice.')


@given(st.text(), st.sampled_from(LANGUAGES))
def test_any_sentence_is_read_without_an_error(sentence: str, language: Language) -> None:
    detect_acts(sentence, language)
    is_correction(sentence)


@pytest.mark.parametrize("unit", ["not ", "we ", "from ", "a", "no, ", "我", '"', "used to ", "i really "])
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_pattern_runs_away(unit: str, language: Language) -> None:
    began = time.process_time()
    detect_acts(unit * 2000, language)
    is_correction(unit * 2000)
    assert time.process_time() - began < 5
