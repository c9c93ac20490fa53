"""Conversations as Anthropic's messages API has them, both ways.

Invariant: `to_anthropic(from_anthropic(messages, system))` says all that was said. A single plain text stands as a
string outside of tool results and as a block inside, null is absent. Blocks of unknown types travel verbatim as
`Unknown` of the kind `anthropic:<type>`; other unknown fields (citations, cache marks) in the metadata under
`anthropic`.

Left out by `to_anthropic`, because the shape can't say it or the provider refuses it: names of speakers, empty texts
and messages, thinking without a signature, unknown parts of other origin, sound, and media that a provider can't fetch.
The texts of system messages go to the system prompt, in order, wherever they stand. Arguments of a call that are no
JSON object are wrapped in one. Consecutive messages of results alone are gathered in one user message, and results
stand first in it, for the provider wants all results to parallel calls together and before what the user says.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ricordo.errors import InvalidMessage
from ricordo.messages.dialects.anthropic_blocks import DIALECT, list_blocks, read_block, write_block
from ricordo.messages.dialects.kept import ExtraFields, find_extra, read_extra
from ricordo.messages.jsontext import require_objects, require_text
from ricordo.messages.types import JsonValue, Message, Part, Role, ToolResult

__all__ = ["AnthropicPrompt", "from_anthropic", "to_anthropic"]

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


@dataclass(frozen=True, kw_only=True)
class AnthropicPrompt:
    """The two fields of a request: `system` is a string, a list of text blocks, or None when there is none."""

    messages: list[dict[str, JsonValue]]
    system: JsonValue = None


def from_anthropic(messages: JsonValue, system: JsonValue = None) -> list[Message]:
    """Read the `messages` and the `system` prompt of a request; a reply reads as a list of one.

    A user message that holds only results becomes a tool message.

    Raises:
        InvalidMessage: the shape is not understood; the text names the position.
    """
    found = [] if system is None else [_read_message("system", list_blocks(system, "system"), {}, "system")]
    for index, value in enumerate(require_objects(messages, "messages")):
        where = f"messages[{index}]"
        role = require_text(value.get("role"), f"{where}.role")
        if role not in _ROLES:
            raise InvalidMessage(f"{where}.role: one of {', '.join(_ROLES)} is needed, not {role!r}.")
        fields: dict[str, JsonValue] = {
            key: item for key, item in value.items() if key not in ("role", "content") and item is not None
        }
        blocks = list_blocks(value.get("content"), f"{where}.content")
        found.append(_read_message(_ROLES[role], blocks, fields, f"{where}.content"))
    return found


def to_anthropic(messages: Iterable[Message]) -> AnthropicPrompt:
    """Write `messages` as the `messages` and the `system` prompt of a request."""
    system: list[JsonValue] = []
    written: list[tuple[Message, list[JsonValue]]] = []
    for message in messages:
        blocks = _write_blocks(message)
        if message.role == "system":
            system += [block for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
        elif written and _only_results(blocks) and _only_results(written[-1][1]):
            written[-1][1].extend(blocks)
        elif blocks:
            written.append((message, blocks))
    return AnthropicPrompt(
        messages=[_make_message(message, blocks) for message, blocks in written],
        system=_simplify_content(system) if system else None,
    )


def _make_message(message: Message, blocks: list[JsonValue]) -> dict[str, JsonValue]:
    is_reply = message.role == "assistant"
    content = _simplify_content(blocks if is_reply else sorted(blocks, key=_is_no_result))
    return {"role": "assistant" if is_reply else "user", "content": content, **read_extra(message, DIALECT).message}


def _read_message(
    role: Role, blocks: Sequence[Mapping[str, JsonValue]], fields: dict[str, JsonValue], where: str
) -> Message:
    parts: list[Part] = []
    kept: dict[int, dict[str, JsonValue]] = {}
    for index, block in enumerate(blocks):
        part = read_block(block, f"{where}[{index}]")
        said = write_block(part)
        if said and (more := find_extra(block, said)):
            kept[index] = {"of": said["type"], "fields": more}
        parts.append(part)
    only_results = bool(parts) and all(isinstance(part, ToolResult) for part in parts)
    return Message(
        role="tool" if role == "user" and only_results else role,
        parts=tuple(parts),
        metadata=ExtraFields(message=fields, parts=kept).to_metadata(DIALECT),
    )


def _write_blocks(message: Message) -> list[JsonValue]:
    kept = read_extra(message, DIALECT)
    written = [(index, write_block(part)) for index, part in enumerate(message.parts)]
    return [kept.restore_part(index, said, "type") for index, said in written if said]


def _only_results(blocks: list[JsonValue]) -> bool:
    return bool(blocks) and not any(map(_is_no_result, blocks))


def _is_no_result(block: JsonValue) -> bool:
    return not (isinstance(block, dict) and block.get("type") == "tool_result")


def _simplify_content(blocks: list[JsonValue]) -> JsonValue:
    """Return the blocks, or a string when they are one plain text."""
    only = blocks[0]
    if len(blocks) == 1 and isinstance(only, dict) and only.keys() == {"type", "text"}:
        return only["text"]
    return blocks
