"""Converts messages to the form that a provider's protocol accepts. Pure functions.

Calls and results are paired, ids and names are made valid, and unsupported media are replaced by descriptions. Thinking
is sent back only to the provider that it came from. Lone surrogates, which JSON cannot hold, become U+FFFD.

Invariant: valid content is not changed.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, fields, is_dataclass, replace
from hashlib import blake2b
from typing import Literal, TypeAlias, TypeVar

from ricordo.errors import InvalidMessage
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import (
    JsonValue,
    Media,
    Message,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Unknown,
    count_provider_items,
    pair_calls,
)
from ricordo.messages.formats.media import is_url, parse_data_uri
from ricordo.messages.formats.passthrough import ExtraFields, read_extra, read_unknown
from ricordo.messages.json_text import dumps, loads
from ricordo.messages.types import PartPosition

__all__ = [
    "ANTHROPIC",
    "CHAT_COMPLETIONS",
    "OTHER_PROTOCOL",
    "RESPONSES",
    "RequestProtocol",
    "RequestRules",
    "count_prepared",
    "make_json_encodable",
    "make_message_encodable",
    "make_text_encodable",
    "make_tool_encodable",
    "prepare_messages",
    "select_rules",
]


_SURROGATE = lazy_compile("[\ud800-\udfff]")
_SURROGATE_PAIR = lazy_compile("[\ud800-\udbff][\udc00-\udfff]")
_REPLACEMENT = "\ufffd"
_T = TypeVar("_T")


def make_text_encodable(text: str) -> str:
    """Return `text` with each lone surrogate replaced; a surrogate pair becomes its character."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    joined = _SURROGATE_PAIR.sub(lambda found: found[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _SURROGATE.sub(_REPLACEMENT, joined)


def make_json_encodable(value: JsonValue) -> JsonValue:
    """Return a JSON value with the texts and the keys of all its levels encodable."""
    if isinstance(value, str):
        return make_text_encodable(value)
    if isinstance(value, list):
        return [make_json_encodable(each) for each in value]
    if isinstance(value, dict):
        return {make_text_encodable(key): make_json_encodable(each) for key, each in value.items()}
    return value


def make_message_encodable(message: Message) -> Message:
    """Return `message` with all its texts encodable."""
    metadata = make_json_encodable(dict(message.metadata))
    return replace(
        message,
        parts=tuple(map(_make_part_encodable, message.parts)),
        metadata=metadata if isinstance(metadata, dict) else {},
    )


def make_tool_encodable(tool: ToolSpec) -> ToolSpec:
    """Return the description of a tool with all its texts encodable."""
    parameters = make_json_encodable(dict(tool.parameters))
    return ToolSpec(
        name=make_text_encodable(tool.name),
        description=make_text_encodable(tool.description),
        parameters=parameters if isinstance(parameters, dict) else {},
    )


def _make_part_encodable(part: _T) -> _T:
    """Return a part with its texts, and those of its nested parts, encodable."""
    changed: dict[str, object] = {}
    for each in fields(part) if is_dataclass(part) else ():
        value = getattr(part, each.name)
        new: object = value
        if isinstance(value, str):
            new = make_text_encodable(value)
        elif isinstance(value, tuple):
            new = tuple(map(_make_part_encodable, value))
        if new != value:
            changed[each.name] = new
    return replace(part, **changed) if changed else part  # type: ignore[type-var]


RequestProtocol: TypeAlias = Literal["chat", "responses", "anthropic", "other"]
_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


@dataclass(frozen=True, kw_only=True)
class RequestRules:
    """The limits of one protocol.

    `max_name_length` of tool names and `max_id_length` of call ids are in characters. `max_messages` is the maximum
    number of messages in a request, None if no limit is known; the protocol `responses` counts each text, call, thought
    and result as one. `user_last` says that a request may not end with the assistant. `reply_tokens` is the default
    reply limit, None if the protocol needs no limit. `accepts_thinking` says that the model reads its earlier thinking;
    in chat completions it is in one of `thinking_fields`. `inline_types` are the media types that a request may
    contain, `url_types` those that may be at a URL: a type, or a whole family such as `image`.
    """

    protocol: RequestProtocol
    max_name_length: int = 64
    max_id_length: int = 40
    max_messages: int | None = None
    user_last: bool = False
    reply_tokens: int | None = None
    accepts_thinking: bool = True
    thinking_fields: frozenset[str] = frozenset({"reasoning", "reasoning_content"})
    inline_types: frozenset[str] = _IMAGE_TYPES | {"application/pdf"}
    url_types: frozenset[str] = frozenset({"image", "application/pdf"})


CHAT_COMPLETIONS = RequestRules(
    protocol="chat",
    max_messages=2_048,
    inline_types=_IMAGE_TYPES | {"application/pdf", "audio/wav", "audio/mpeg"},
)
"""OpenAI's chat completions, and every server that is compatible with them."""
RESPONSES = RequestRules(protocol="responses", max_messages=2_048)
"""OpenAI's responses."""
ANTHROPIC = RequestRules(
    protocol="anthropic",
    max_name_length=128,
    max_id_length=64,
    max_messages=100_000,
    user_last=True,
    reply_tokens=16_384,
)
"""Anthropic's messages."""
OTHER_PROTOCOL = RequestRules(protocol="other")
"""A provider without its own rules here: the strictest rules of the others, without a message limit."""


def select_rules(model: object) -> RequestRules:
    """Return the rules of the protocol that a pydantic-ai model uses."""
    names = {kind.__name__ for kind in type(model).__mro__}
    if "AnthropicModel" in names:
        return ANTHROPIC
    profile = getattr(model, "profile", {})
    if "OpenAIResponsesModel" in names:
        return replace(RESPONSES, accepts_thinking=bool(profile.get("openai_supports_encrypted_reasoning_content")))
    if "OpenAIChatModel" not in names:
        return OTHER_PROTOCOL
    thinking_field = profile.get("openai_chat_thinking_field")
    accepts_thinking = profile.get("openai_chat_send_back_thinking_parts", "auto") in ("auto", "field")
    fields = frozenset({thinking_field}) if thinking_field else CHAT_COMPLETIONS.thinking_fields
    return replace(CHAT_COMPLETIONS, accepts_thinking=accepts_thinking, thinking_fields=fields)


_DIALECT = "pydantic-ai"
_UNSAFE_CHARACTERS = lazy_compile(r"[^a-zA-Z0-9_-]")
_DIGEST = 4
_NO_OUTPUT = "(no output)"
_NO_REASON = "(the tool failed and did not say why)"
_NO_RESULT = "(no result of this call is on record)"
_HIDDEN_BEGINNING = "(The beginning of this conversation is not shown.)"
_CONTINUE_PROMPT = "Go on."
_CHAT_FIELDS = frozenset({"content", "reasoning", "reasoning_content"})
"""Values in place of the id of a thought from chat completions."""


@dataclass(frozen=True, kw_only=True)
class _SendablePart:
    """A part of a message, and the extra fields of pydantic-ai's format."""

    part: Part
    extra: Mapping[str, JsonValue] = field(default_factory=dict)


def prepare_messages(messages: Sequence[Message], rules: RequestRules, *, provider: str) -> tuple[Message, ...]:
    """Return `messages` in the form that `rules` require; `provider` is the provider's name in its own thinking.

    Texts of system messages move to the front, in order. Times, ids and usage of messages are left out.

    Raises:
        InvalidMessage: no message in `messages` has content.
    """
    encodable = [make_message_encodable(message) for message in messages]
    system = "\n\n".join(message.text for message in encodable if message.role == "system" and message.text.strip())
    turns = list(_prepare_turns(encodable, rules, provider))
    if not turns:
        raise InvalidMessage("There is nothing to answer: no message of this request says anything.")
    if turns[0].role != "user":
        turns.insert(0, _text_message("user", _HIDDEN_BEGINNING))
    if rules.user_last and turns[-1].role == "assistant":
        turns.append(_text_message("user", _CONTINUE_PROMPT))
    return (*([_text_message("system", system)] if system else []), *turns)


def count_prepared(messages: Sequence[Message], rules: RequestRules) -> int:
    """Return the provider's message count of the output of `prepare_messages`: each result counts as one."""
    if rules.protocol == "responses":
        return sum(map(count_provider_items, messages))
    return sum(max(1, len(message.tool_results)) for message in messages)


def _text_message(role: str, text: str) -> Message:
    return Message(role="system" if role == "system" else "user", parts=(Text(text=text),))


def _prepare_turns(messages: Sequence[Message], rules: RequestRules, provider: str) -> Iterator[Message]:
    results = _find_first_results(messages)
    ids = _CallIds(rules.max_id_length)
    for index, message in enumerate(messages):
        if message.role == "system":
            continue
        if message.role != "assistant":
            pieces = [piece for each in _split_message(message) if (piece := _prepare_request_part(each, rules))]
            if pieces:
                yield _build_message(message, "user", pieces)
            continue
        answers: list[ToolResult] = []
        pieces = []
        for number, piece in enumerate(_split_message(message)):
            if isinstance(piece.part, ToolCall):
                call = ids.assign(_prepare_call(piece.part, rules))
                result = results.get(PartPosition(message=index, part=number))
                answers.append(_prepare_result(call, result, rules))
                pieces.append(replace(piece, part=call) if call.id == piece.part.id else _SendablePart(part=call))
            elif _is_sent(piece, rules, provider):
                pieces.append(piece)
        if rules.protocol == "responses" and not any(isinstance(piece.part, Thinking) for piece in pieces):
            pieces = [_without_provider_id(piece) for piece in pieces]
        if any(not isinstance(piece.part, Thinking) for piece in pieces):
            yield _build_message(message, "assistant", _without_last_thoughts(pieces))
        if answers:
            yield Message(role="tool", parts=tuple(answers))


def _find_first_results(messages: Sequence[Message]) -> dict[PartPosition, ToolResult]:
    """Return the first result of each call, by the position of the call.

    Calls of one message that share an id are matched in order.
    """
    calls: dict[tuple[int, str], list[PartPosition]] = {}
    results: dict[tuple[int, str], list[ToolResult]] = {}
    for call, result_position in pair_calls(messages).answered:
        result = messages[result_position.message].parts[result_position.part]
        if isinstance(result, ToolResult):
            key = (call.message, result.call_id)
            results.setdefault(key, []).append(result)
            if call not in calls.setdefault(key, []):
                calls[key].append(call)
    return {
        call: result
        for key, positions in calls.items()
        for call, result in zip(sorted(positions), results[key], strict=False)
    }


def _split_message(message: Message) -> list[_SendablePart]:
    extra = read_extra(message, _DIALECT)
    return [_SendablePart(part=part, extra=extra.parts.get(index, {})) for index, part in enumerate(message.parts)]


def _build_message(message: Message, role: str, pieces: Sequence[_SendablePart]) -> Message:
    """Return a message of these pieces, with the marks of `message` and its extra fields."""
    extra = ExtraFields(
        message=read_extra(message, _DIALECT).message,
        parts={index: piece.extra for index, piece in enumerate(pieces) if piece.extra},
    )
    others = {key: value for key, value in message.metadata.items() if key != _DIALECT}
    return Message(
        role="assistant" if role == "assistant" else "user",
        parts=tuple(piece.part for piece in pieces),
        metadata={**others, **extra.to_metadata(_DIALECT)},
    )


def _prepare_request_part(piece: _SendablePart, rules: RequestRules) -> _SendablePart | None:
    """Return a part of a user message; None if it is empty. Results and calls are handled elsewhere."""
    part = piece.part
    if isinstance(part, Text):
        return piece if part.text.strip() else None
    if isinstance(part, Media):
        return piece if _is_supported(part, rules) else _SendablePart(part=Text(text=_describe_media(part)))
    return piece if isinstance(part, Unknown) and read_unknown(part, _DIALECT) else None


def _is_sent(piece: _SendablePart, rules: RequestRules, provider: str) -> bool:
    """Return whether a part of a reply is sent back. Thinking goes only to its own provider, with its signature."""
    part = piece.part
    if isinstance(part, Text):
        return bool(part.text.strip())
    if isinstance(part, Unknown):
        return bool(read_unknown(part, _DIALECT))
    if not isinstance(part, Thinking):
        return False
    fields = piece.extra.get("fields")
    extra_fields = fields if isinstance(fields, dict) else {}
    provider_name, own_id = extra_fields.get("provider_name"), extra_fields.get("id")
    if provider_name != provider or not rules.accepts_thinking or not (part.text or part.signature):
        return False
    if rules.protocol == "chat":
        return own_id in rules.thinking_fields
    return bool(own_id) and own_id not in _CHAT_FIELDS if rules.protocol == "responses" else bool(part.signature)


def _without_provider_id(piece: _SendablePart) -> _SendablePart:
    """Return a piece without the provider's id: an item with an id is rejected without its thinking."""
    fields = piece.extra.get("fields")
    if not isinstance(fields, dict) or "id" not in fields:
        return piece
    return replace(piece, extra={**piece.extra, "fields": {key: each for key, each in fields.items() if key != "id"}})


def _without_last_thoughts(pieces: Sequence[_SendablePart]) -> Sequence[_SendablePart]:
    """Return a reply without its trailing thinking, which providers reject."""
    last = max(index for index, piece in enumerate(pieces) if not isinstance(piece.part, Thinking))
    return pieces[: last + 1]


def _prepare_call(call: ToolCall, rules: RequestRules) -> ToolCall:
    """Return a call with a valid name, and with arguments that are an object."""
    name = _UNSAFE_CHARACTERS.sub("_", call.name)[: rules.max_name_length] or "unknown"
    return ToolCall(id=call.id, name=name, arguments=_to_json_object(call.arguments))


def _to_json_object(arguments: str) -> str:
    """Return arguments as the JSON text of an object; any other value is wrapped under `arguments`."""
    if not arguments.strip():
        return "{}"
    try:
        value = loads(arguments)
    except InvalidMessage:
        return dumps({"arguments": arguments})
    if not isinstance(value, dict):
        return dumps({"arguments": arguments})
    encodable = make_json_encodable(value)
    return arguments if encodable == value else dumps(encodable)


class _CallIds:
    """Gives every call of a request a unique valid id: its original id wherever possible."""

    def __init__(self, max_chars: int) -> None:
        self._longest = max_chars
        self._taken: set[str] = set()

    def assign(self, call: ToolCall) -> ToolCall:
        own_id = call.id
        number = 0
        while not own_id or len(own_id) > self._longest or _UNSAFE_CHARACTERS.search(own_id) or own_id in self._taken:
            number += 1
            digest = blake2b(f"{call.id}\0{number}".encode(), digest_size=_DIGEST).hexdigest()
            own_id = f"{_UNSAFE_CHARACTERS.sub('_', call.id)[: self._longest - 2 * _DIGEST - 1] or 'call'}-{digest}"
        self._taken.add(own_id)
        return call if own_id == call.id else replace(call, id=own_id)


def _prepare_result(call: ToolCall, result: ToolResult | None, rules: RequestRules) -> ToolResult:
    """Return the result of a call under the id sent with the call; a missing result is replaced by a placeholder."""
    if result is None:
        return ToolResult(call_id=call.id, parts=(Text(text=_NO_RESULT),), name=call.name, is_error=True)
    parts = tuple(_prepare_contents(result.parts, rules))
    if not parts:
        parts = (Text(text=_NO_REASON if result.is_error else _NO_OUTPUT),)
    return ToolResult(call_id=call.id, parts=parts, name=call.name, is_error=result.is_error)


def _prepare_contents(parts: Iterable[Text | Media | Unknown], rules: RequestRules) -> Iterator[Text | Media]:
    for part in parts:
        match part:
            case Text():
                if part.text.strip():
                    yield part
            case Media():
                yield part if _is_supported(part, rules) else Text(text=_describe_media(part))
            case Unknown():
                yield Text(text=f"[{part.kind}: this can't be shown here.]")


def _is_supported(media: Media, rules: RequestRules) -> bool:
    """Return whether a medium can be sent: it has a supported type, and is inline or at a URL."""
    data_uri = parse_data_uri(media.uri)
    if data_uri:
        return data_uri[0] in rules.inline_types and bool(_decode_base64(data_uri[1]))
    family = media.media_type.partition("/")[0]
    return is_url(media.uri) and not {media.media_type, family}.isdisjoint(rules.url_types)


def _decode_base64(text: str) -> bytes:
    """Return the decoded base64; empty if it is invalid."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _describe_media(media: Media) -> str:
    """Return the text for a medium that cannot be sent: its content if it is text, else its description."""
    description = ", ".join(filter(None, (media.media_type, media.name, media.description)))
    data_uri = parse_data_uri(media.uri)
    if data_uri and data_uri[0].startswith("text/"):
        with suppress(UnicodeDecodeError):
            return f"[{description}]\n{_decode_base64(data_uri[1]).decode()}"
    return f"[{description or 'a medium'}: this can't be shown here.]"
