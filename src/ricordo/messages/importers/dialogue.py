"""Dialogues of two people in numbered sessions, the form of data sets on long-term conversations.

Both speakers have the role user and are told apart by name. A picture is kept by its caption. All turns of a session
have the session's time.
"""

import re
from collections.abc import Iterator, Mapping

from ricordo.errors import InvalidMessage
from ricordo.lazy import lazy_compile
from ricordo.messages.importers.records import first_value, parse_time, read_identifier
from ricordo.messages.types import JsonValue, Media, Message, Part, Text

__all__ = ["iterate_sessions", "read_dialogue_turn"]


_SESSION = lazy_compile(r"session_(\d{1,6})", re.ASCII)


def iterate_sessions(dialogue: Mapping[str, JsonValue]) -> Iterator[tuple[int, list[JsonValue], JsonValue]]:
    """Give number, turns and written time of each session that has turns, by number."""
    numbers = sorted((int(match[1]), key) for key in dialogue if (match := _SESSION.fullmatch(key)))
    for number, key in numbers:
        turns = dialogue[key]
        if isinstance(turns, list) and turns:
            yield number, turns, dialogue.get(f"{key}_date_time")


def read_dialogue_turn(turn: JsonValue, time: JsonValue) -> Message:
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
