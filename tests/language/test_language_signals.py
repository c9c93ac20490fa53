"""Signals: told from phrases in many languages, on labelled messages, and never from what is quoted, denied or asked.

The messages stand in `signal_messages/`: one half the phrases were tuned on, the other was written afterwards.
"""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo.language import SIGNALS
from ricordo.language.acts import Signal, default_detector, is_acknowledgement
from signals import HALVES, labelled, score

pytestmark = pytest.mark.req("DF-B11")

LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "zh", "ja", "ko", "ru", "ar", "hi")


def signals_of(text: str) -> frozenset[Signal]:
    return default_detector().detect(text)


# Precision and recall of all signals, and the least that each class and each language has to reach.
FLOORS = {"developed_on": (0.97, 0.97, 0.9, 0.9), "held_out": (0.95, 0.8, 0.2, 0.5)}


def test_the_labelled_set_is_large_in_many_languages_and_half_of_it_gives_no_signal() -> None:
    messages = [message for half in HALVES for message in labelled(half)]
    assert len(messages) >= 300
    assert {message.language for message in messages} >= set(LANGUAGES)
    assert 0.45 <= sum(not message.signals for message in messages) / len(messages) <= 0.55
    assert len({message.text for message in messages}) == len(messages)


@pytest.mark.req("DF-SIGNAL")
@pytest.mark.parametrize("half", FLOORS)
def test_signals_are_told_with_high_precision_and_recall(half: str) -> None:
    precision, recall, of_class, of_language = FLOORS[half]
    reached = score(labelled(half))
    assert (reached.precision >= precision, reached.recall >= recall) == (True, True), reached
    for signal in SIGNALS:
        assert min(score(labelled(half), [signal]).precision, score(labelled(half), [signal]).recall) >= of_class, (
            signal
        )
    for language in LANGUAGES:
        own = score(message for message in labelled(half) if message.language == language)
        assert own.recall >= of_language, language


CORRECTED = {
    "en": "No, that's wrong, the port is 9090.",
    "zh": "你理解错了，端口是9090。",
    "de": "Nein, das ist falsch, der Port ist 9090.",
    "fr": "Non, c'est faux, le port est 9090.",
    "es": "No, eso está mal, el puerto es 9090.",
    "it": "No, hai capito male, la porta è la 9090.",
    "pt": "Não, isso está errado, a porta é 9090.",
    "ja": "違います。ポートは9090です。",
    "ko": "아니요, 틀렸어요. 포트는 9090이에요.",
    "ru": "Нет, это неверно, порт 9090.",
    "ar": "لا، هذا خطأ، المنفذ هو 9090.",
    "hi": "नहीं, यह गलत है, पोर्ट 9090 है।",
    "nl": "Nee, dat klopt niet, de poort is 9090.",
    "pl": "Nie, to nieprawda, port to 9090.",
    "sv": "Nej, det stämmer inte, porten är 9090.",
    "tr": "Hayır, bu yanlış, port 9090.",
}
NO_SIGNAL = [
    "IBM cloud", "I'm done", "add retry: try again after 5 s", "对不对？", "“不对”是什么意思", "> I prefer tabs",
    "I don't think that's wrong.", "The log says that's wrong", 'It prints "No, that\'s wrong."', "`I prefer tabs`",
    "It answers 'No, that is wrong.'", "The label is ‘I prefer tabs’.", "『我喜欢制表符。』", "《不对，用制表符。》",
    "Is that wrong?", "```\nNo, that's wrong.\n```", "Das ist nicht falsch.", "No creo que esté mal.",
    "Ce n'est pas faux.",
    "我不觉得你理解错了", "Er sagte „das ist falsch“.", "If I prefer tabs, what then", "I haven't decided.",
    "He said: I'm a doctor.",
]  # fmt: skip


@pytest.mark.req("DF-B11")
def test_look_alikes_quotes_and_denials_give_no_signal_and_corrections_are_known_in_sixteen_languages() -> None:
    assert {text: signals_of(text) for text in NO_SIGNAL if signals_of(text)} == {}
    assert [language for language, text in CORRECTED.items() if "correction" not in signals_of(text)] == []
    quoted = {language: f'"{text}"' for language, text in CORRECTED.items()}
    assert [language for language, text in quoted.items() if signals_of(text)] == []


@pytest.mark.req("DF-SIGNAL")
@pytest.mark.parametrize(
    ("signal", "english", "chinese"),
    [
        ("correction", "Try again, please.", "不对，用制表符。"),
        ("reinforcement", "Yes, exactly!", "就是这个意思。"),
        ("preference", "I prefer short answers.", "我喜欢简短的回答。"),
        ("identity", "I'm a data engineer.", "我是一名工程师。"),
        ("goal", "My goal is a release in May.", "我打算五月发布。"),
        ("decision", "Let's go with Redis.", "那就用 Redis。"),
    ],
)
def test_each_class_is_known_in_english_and_chinese(signal: Signal, english: str, chinese: str) -> None:
    assert signal in signals_of(english)
    assert signal in signals_of(chinese)


@pytest.mark.req("DF-C11")
def test_one_message_can_give_several_signals() -> None:
    text = "Perfect, that's what I wanted. But no, use tabs: I prefer them. I'm a data engineer."
    assert signals_of(text) >= {"reinforcement", "preference", "identity"}


@pytest.mark.req("DF-SIGNAL")
def test_a_bare_yes_reinforces_nothing() -> None:
    assert [signals_of(text) for text in ("对", "没错", "yes", "right")] == [frozenset()] * 4


def test_an_acknowledgement_is_the_whole_text() -> None:
    assert all(is_acknowledgement(text) for text in ("ok", "OK, thanks!!", "好的，谢谢。", "👍", "धन्यवाद"))
    assert not any(is_acknowledgement(text) for text in ("", " ", "ok but no", "no", "thanks to Ana", "ok " * 60, "C"))


@settings(max_examples=60)
@given(st.text(max_size=300))
def test_any_text_is_read_without_trouble(text: str) -> None:
    assert signals_of(text) <= set(SIGNALS)
    assert is_acknowledgement(text) in {True, False}


@pytest.mark.parametrize(
    "unit",
    [
        "no, ",
        "the a ",
        "not a ",
        "ich will lernen ",
        "a, not ",
        "我",
        "i said ",
        "मैं ",
        "その",
        "\"'",
        "(",
        "nicht x, ",
        "o ",
    ],
)
def test_the_time_is_linear_in_the_text(unit: str) -> None:
    """Twenty thousand characters take a fraction of a second, whatever they repeat; not the square of it."""
    began = time.process_time()
    signals_of(unit * (20_000 // len(unit)))
    is_acknowledgement(unit * 20)
    assert time.process_time() - began < 5
