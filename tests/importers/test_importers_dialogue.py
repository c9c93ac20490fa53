"""Dialogues of two people in numbered sessions."""

import json
from datetime import UTC, datetime
from pathlib import Path

from importing import take
from ricordo.messages import JsonValue, Media, Text

TALK: dict[str, JsonValue] = {
    "speaker_a": "Nadia",
    "speaker_b": "Tom",
    "session_10_date_time": "12:05 am on 1 March, 2025",
    "session_10": [{"speaker": "Nadia", "dia_id": "D10:1", "text": "We moved to Porto in the end."}],
    "session_2_date_time": "1:56 pm on 8 February, 2025",
    "session_2": [
        {"speaker": "Nadia", "dia_id": "D2:1", "text": "I've started to learn the cello."},
        {
            "speaker": "Tom",
            "dia_id": "D2:2",
            "text": "Here's mine!",
            "img_url": ["https://pictures.example/cello.jpg"],
            "blip_caption": "a photo of a cello leaning on a chair",
        },
        {"speaker": "Tom", "dia_id": "D2:3", "blip_caption": "a photo of a cat"},
    ],
    "session_3_date_time": "9:00 am on 9 February, 2025",
}


def test_each_session_of_a_dialogue_is_a_session_in_the_order_of_its_number(tmp_path: Path) -> None:
    taken = take(tmp_path / "talks.json", json.dumps([{"sample_id": "talk-7", "conversation": TALK, "qa": []}]))
    assert taken.sessions == ["talk-7-session-2"] * 3 + ["talk-7-session-10"]
    assert [each.message.id for each in taken.imported] == ["D2:1", "D2:2", "D2:3", "D10:1"]
    assert taken.problems == []


def test_both_speakers_are_people_with_names_and_the_time_of_their_session(tmp_path: Path) -> None:
    messages = [each.message for each in take(tmp_path / "talk.json", json.dumps(TALK, indent=1)).imported]
    assert [(message.role, message.name) for message in messages] == [
        ("user", "Nadia"),
        ("user", "Tom"),
        ("user", "Tom"),
        ("user", "Nadia"),
    ]
    assert messages[0].time == datetime(2025, 2, 8, 13, 56, tzinfo=UTC)
    assert messages[3].time == datetime(2025, 3, 1, 0, 5, tzinfo=UTC)


def test_a_picture_is_kept_by_its_caption(tmp_path: Path) -> None:
    messages = [each.message for each in take(tmp_path / "talk.json", json.dumps(TALK)).imported]
    picture = Media(
        media_type="image/*",
        uri="https://pictures.example/cello.jpg",
        description="a photo of a cello leaning on a chair",
    )
    assert messages[1].parts == (Text(text="Here's mine!"), picture)
    assert messages[2].parts == (Media(media_type="image/*", uri="", description="a photo of a cat"),)


def test_a_dialogue_without_an_id_is_named_the_same_after_it_has_grown(tmp_path: Path) -> None:
    earlier = {key: value for key, value in TALK.items() if "10" not in key}
    short, long = (take(tmp_path / "talk.json", json.dumps(talk)).sessions for talk in (earlier, TALK))
    assert short == long[:3]


def test_a_broken_turn_is_reported_and_hides_no_other(tmp_path: Path) -> None:
    turns: list[JsonValue] = [7, {"text": "who?"}, {"speaker": "Tom"}, {"speaker": "Tom", "text": "Me."}]
    talk = {**TALK, "session_2": turns}
    taken = take(tmp_path / "talk.json", json.dumps(talk))
    assert taken.texts == ["Me.", "We moved to Porto in the end."]
    assert len(taken.problems) == 3
