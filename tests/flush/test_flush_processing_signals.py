"""Signals of a conversation: whose messages, how many of them, and with whose patterns."""

import re
from pathlib import Path

import pytest

from ricordo.errors import InvalidSetting
from ricordo.extraction import process_messages
from ricordo.extraction.preprocessing import ProcessingConfig, detect_signals, load_detector
from ricordo.language import SIGNALS
from ricordo.language.acts import Signal
from ricordo.messages import Media, Message, Text

pytestmark = pytest.mark.req("DF-SIGNAL")

CORRECTION = "No, that's wrong. We deploy from main."
PATTERNS: dict[str, str | None] = {signal: f'- "{signal} here"\n' for signal in SIGNALS}


def user(*texts: str) -> Message:
    return Message(role="user", parts=tuple(Text(text=text) for text in texts))


def assistant(text: str = "Noted.") -> Message:
    return Message(role="assistant", parts=(Text(text=text),))


@pytest.mark.req("DF-C11", "DF-C12", "DF-C13")
def test_signals_come_from_people_in_the_last_six_filtered_messages_with_list_content_and_several_at_once() -> None:
    old = [user(CORRECTION), assistant()]
    chatter = [Message(role="tool"), Message(role="system", parts=(Text(text=CORRECTION),))] * 4
    recent = [user("Where is it?"), assistant(CORRECTION), user("And now?"), assistant("I prefer tabs.")]
    assert process_messages([*old, *recent, user("Go on."), assistant()]).signals == frozenset()
    assert process_messages([*old, *chatter, *recent]).signals == {"correction"}
    assert process_messages([*old, *recent, user("Go on.")]).signals == frozenset(), "it is the seventh"
    assert process_messages([user("Hm."), assistant(), *old, *recent, user("Go on.")]).signals == frozenset()
    picture = Media(media_type="image/png", uri="a.png")
    parts = (Text(text="See the picture."), picture, Text(text="I prefer tables. Let's go with the second layout."))
    assert process_messages([*recent, Message(role="user", parts=parts)]).signals == {"preference", "decision"}


@pytest.mark.req("DF-C11")
def test_the_window_counts_what_is_left_after_filtering() -> None:
    talk = [user(CORRECTION), *[user("ok"), assistant()] * 6, assistant()]
    assert process_messages([user("Hm."), assistant(), *talk]).signals == {"correction"}
    assert detect_signals([user(CORRECTION), assistant()], config=ProcessingConfig(signal_window=1)) == frozenset()


@pytest.mark.req("DF-B11", "DF-C11")
@pytest.mark.parametrize("no", ["No, use tabs.", "Nein, nimm Tabs.", "Нет, используй табы."])
def test_a_no_that_answers_a_question_corrects_nothing(no: str) -> None:
    assert detect_signals([assistant("Shall I keep the spaces?"), user(no)]) == frozenset()
    assert detect_signals([assistant("I used spaces."), user(no)]) == {"correction"}
    many = [user("Hm."), assistant("Shall I keep the spaces?"), user(no)]
    assert detect_signals(many, config=ProcessingConfig(signal_window=1)) == frozenset()


def patterns(folder: Path, **files: str | None) -> Path:
    for signal, text in {**PATTERNS, **files}.items():
        if text is not None:
            (folder / f"{signal}.yaml").write_text(text, "utf8")
    return folder


@pytest.mark.req("DF-C14")
def test_a_directory_of_patterns_takes_the_place_of_all_that_come_along(tmp_path: Path) -> None:
    flags = '- pattern: "^Stop$"\n  flags: [multiline]\n- "(?P<x>no) (?P=x)"\n- "^(?P<x>nope)"\n'
    detector = load_detector(patterns(tmp_path, correction=flags, goal="[]"))
    config = ProcessingConfig(detector=detector)
    assert process_messages([user(CORRECTION, "I prefer tabs."), assistant()], config=config).signals == frozenset()
    assert process_messages([user("PREFERENCE HERE, decision here"), assistant()], config=config).signals == {
        "preference",
        "decision",
    }
    assert [bool(detector.detect(text)) for text in ("Stop", "stop", "no no", "Nope", "goal here")] == [
        True,
        False,
        True,
        True,
        False,
    ]


@pytest.mark.req("DF-C14")
@pytest.mark.parametrize(
    "content",
    [
        None,
        "- '(unclosed'",
        "- [a",
        "just text",
        "- 3",
        "- pattern: ''",
        "- {pattern: a, flags: [loud]}",
        "- {pattern: a, flags: loud}",
        "- '(a+)+$'",
        "- '((?:a*b)c)*d'",
        "- !!python/object/apply:os.getcwd []",
    ],
)
@pytest.mark.parametrize("signal", SIGNALS)
def test_a_missing_file_or_an_invalid_pattern_is_refused_at_construction_by_name(
    tmp_path: Path, content: str | None, signal: Signal
) -> None:
    patterns(tmp_path)
    assert load_detector(tmp_path).detect(f"{signal} here") == {signal}
    path = tmp_path / f"{signal}.yaml"
    path.unlink()
    if content is not None:
        path.write_text(content, "utf8")
    with pytest.raises(InvalidSetting, match=re.escape(str(path))):
        ProcessingConfig(detector=load_detector(tmp_path))


@pytest.mark.req("DF-C14")
@pytest.mark.parametrize("pattern", [r"(?:a|b){0,5}", r"[+*(]+x", r"(a{1,3})+", r"\(a+\)+", "(?=a+)b"])
def test_bounded_repetition_is_no_trouble(tmp_path: Path, pattern: str) -> None:
    assert load_detector(patterns(tmp_path, goal=f"- '{pattern}'")) is not None
