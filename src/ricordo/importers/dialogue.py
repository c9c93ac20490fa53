"""Dialogues of two people in numbered sessions, the form of data sets on long-term conversations.

Both speakers have the role user and are told apart by name. A picture is kept by its caption. All turns of a session
have the session's time.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ricordo.errors import InvalidMessage
from ricordo.importers.contract import ImportedMessage
from ricordo.importers.fields import first_value, parse_time, read_identifier
from ricordo.importers.sessions import SessionNames, safe_session_id
from ricordo.importers.source import ImportSource
from ricordo.lazy import lazy_compile
from ricordo.messages.types import JsonValue, Media, Message, Part, Text

__all__ = ["read", "recognizes"]


_NESTED_LISTS = 3
_SESSION = lazy_compile(r"session_(\d{1,6})", re.ASCII)


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` holds dialogues: objects with speakers and numbered sessions."""
    return any(_find_dialogues(record.value) for record in source.first_records)


def read(source: ImportSource) -> Iterator[ImportedMessage]:
    """Give the turns of each dialogue, session by session."""
    names = SessionNames(Path(source.filename).stem)
    for record in source.records():
        dialogues = _find_dialogues(record.value)
        if not dialogues:
            source.report(record.line, "The record is no dialogue.")
        for dialogue, sample in dialogues:
            yield from _read_dialogue(source, record.line, dialogue, sample, names)


def _find_dialogues(value: JsonValue, depth: int = 0) -> list[tuple[Mapping[str, JsonValue], str | None]]:
    """Return each dialogue in `value` with the id of its sample, None if it has none."""
    if isinstance(value, list):
        return [found for each in value for found in _find_dialogues(each, depth + 1)] if depth < _NESTED_LISTS else []
    if not isinstance(value, dict):
        return []
    inner = value.get("conversation")
    dialogue = next((each for each in (inner, value) if isinstance(each, dict) and _is_dialogue(each)), None)
    return [] if dialogue is None else [(dialogue, read_identifier(first_value(value, ("sample_id", "id"))))]


def _is_dialogue(value: Mapping[str, JsonValue]) -> bool:
    return isinstance(value.get("speaker_a"), str) and any(_SESSION.fullmatch(key) for key in value)


def _read_dialogue(
    source: ImportSource, line: int, dialogue: Mapping[str, JsonValue], sample: str | None, names: SessionNames
) -> Iterator[ImportedMessage]:
    base = None if sample is None else safe_session_id(sample)
    for number, turns, time in _iterate_sessions(dialogue):
        for turn in turns:
            try:
                message = _read_turn(turn, time)
            except InvalidMessage as error:
                source.report(line, f"session_{number}: {error}")
                continue
            base = base or names.derive(message)
            yield ImportedMessage(session=f"{base}-session-{number}", message=message, line=line)


def _iterate_sessions(dialogue: Mapping[str, JsonValue]) -> Iterator[tuple[int, list[JsonValue], JsonValue]]:
    """Give number, turns and written time of each session that has turns, by number."""
    numbers = sorted((int(match[1]), key) for key in dialogue if (match := _SESSION.fullmatch(key)))
    for number, key in numbers:
        turns = dialogue[key]
        if isinstance(turns, list) and turns:
            yield number, turns, dialogue.get(f"{key}_date_time")


def _read_turn(turn: JsonValue, time: JsonValue) -> Message:
    """Read one turn of a session held at `time`.

    Raises:
        InvalidMessage: it has no speaker, or says and shows nothing.
    """
    if not isinstance(turn, dict):
        raise InvalidMessage("A turn of a dialogue is an object.")
    speaker, text = read_identifier(turn.get("speaker")), turn.get("text")
    if speaker is None:
        raise InvalidMessage("The turn has no speaker.")
    text_parts: tuple[Part, ...] = (Text(text=text),) if isinstance(text, str) and text else ()
    parts = text_parts + _read_pictures(turn)
    if not parts:
        raise InvalidMessage("The turn has neither a text nor a picture.")
    return Message(
        role="user", name=speaker, parts=parts, id=read_identifier(turn.get("dia_id")) or "", time=parse_time(time)
    )


def _read_pictures(turn: Mapping[str, JsonValue]) -> tuple[Media, ...]:
    caption, urls = turn.get("blip_caption"), first_value(turn, ("img_url", "img_urls"))
    uris = [uri for uri in (urls if isinstance(urls, list) else [urls]) if isinstance(uri, str)]
    description = caption if isinstance(caption, str) and caption else None
    if description is not None and not uris:
        uris = [""]
    return tuple(Media(media_type="image/*", uri=uri, description=description) for uri in uris)
