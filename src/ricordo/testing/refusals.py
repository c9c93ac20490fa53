"""Requests that providers refuse, by the rules of each protocol, with the providers' error messages. Pure.

All providers refuse tool calls without results and results without calls. If two servers of one protocol differ, the
stricter rule applies, so an accepted request passes at both.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from ricordo.lazy import lazy_compile
from ricordo.messages import JsonValue, Message, PartPosition, ToolCall, ToolResult, pair_calls
from ricordo.messages.tokens import estimate_request
from ricordo.testing.protocol import ParsedRequest, RequestBody
from ricordo.testing.script import THINKING_SIGNATURE, Fail

__all__ = ["MAX_MESSAGES", "pairing_refusal", "request_refusal", "window_refusal"]


def pairing_refusal(messages: Sequence[Message]) -> str:
    """Return why a provider would refuse `messages`; empty if it would accept them."""
    pairing = pair_calls(messages)
    orphans = [_call_id_at(messages, place) for place in pairing.orphans]
    if orphans:
        return f"Tool results without their calls: {', '.join(orphans)}."
    unanswered = [_call_id_at(messages, place) for place in (*pairing.abandoned, *pairing.pending)]
    return f"Tool calls without their results: {', '.join(unanswered)}." if unanswered else ""


def _call_id_at(messages: Sequence[Message], position: PartPosition) -> str:
    match messages[position.message].parts[position.part]:
        case ToolCall(id=id):
            return id
        case ToolResult(call_id=call_id):
            return call_id
        case _:
            return "?"


MAX_MESSAGES = 2_048
"""The largest number of messages that OpenAI accepts in one request."""
_MIN_THINKING_TOKENS = 1_024
_SURROGATE = lazy_compile("[\ud800-\udfff]")
_NAME = lazy_compile(r"[a-zA-Z0-9_-]{1,64}")
_LONG_NAME = lazy_compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = lazy_compile(r"[a-zA-Z0-9_-]{1,64}")
_IMAGE_TYPES = {"image/jpeg", "image/png", "image/gif", "image/webp"}


def request_refusal(path: str, body: RequestBody) -> Fail | None:
    """Return the error with which the provider at `path` refuses `body`; None if it accepts the request."""
    check = _CHECKS.get(path)
    if check is None:
        return None
    if any(_SURROGATE.search(text) for text in _iterate_texts(dict(body))):
        return Fail(400, "We could not parse the JSON body of your request: invalid unicode code point.")
    counted = _count_refusal(path, body)
    if counted:
        return counted
    objection = next(check(body), "")
    return Fail(400, objection, param="messages") if objection else None


def window_refusal(path: str, body: RequestBody, request: ParsedRequest, window: int) -> Fail | None:
    """Return the error of a server with a `window` in tokens; None if prompt and reply fit into it together."""
    size = estimate_request(request.messages, tools=request.tools).input
    limits = (body.get(key) for key in ("max_tokens", "max_completion_tokens", "max_output_tokens"))
    output = next((limit for limit in limits if isinstance(limit, int)), 0)
    if size + output <= window:
        return None
    anthropic = path == "/messages"
    limit_text = f"This model's maximum context length is {window} tokens. However, "
    if size > window:
        ours, theirs = (
            f"prompt is too long: {size} tokens > {window} maximum",
            f"your messages resulted in {size} tokens.",
        )
    else:
        ours = f"input length and `max_tokens` exceed context limit: {size} + {output} > {window}"
        theirs = f"you requested {size + output} tokens ({size} in the messages, {output} in the completion)."
    text = ours if anthropic else limit_text + theirs
    code = None if anthropic else "context_length_exceeded"
    return Fail(400, text, code=code, overflow=True, window=window, size=size)


def _count_refusal(path: str, body: RequestBody) -> Fail | None:
    key = "input" if path == "/responses" else "messages"
    count = len(_as_list(body.get(key)))
    if path == "/messages" or count <= MAX_MESSAGES:
        return None
    text = (
        f"Invalid '{key}': array too long. Expected an array with maximum length {MAX_MESSAGES}, "
        f"but got an array with length {count} instead."
    )
    return Fail(400, text, code="array_above_max_length", param=key)


def _check_chat(body: RequestBody) -> Iterator[str]:
    messages = _as_records(body.get("messages"))
    yield from _tool_objections([_nested_record(tool, "function") for tool in _as_records(body.get("tools"))], _NAME)
    if not messages:
        yield "Invalid 'messages': empty array. Expected an array with minimum length 1."
    waiting: list[str] = []
    for index, message in enumerate(messages):
        path, role = f"messages[{index}]", message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"{path}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            else:
                waiting.remove(str(message.get("tool_call_id")))
            if not isinstance(message.get("content"), str | list):
                yield f"{path}.content: a string or a list is needed."
            continue
        if waiting:
            yield f"{path}: an assistant message with 'tool_calls' must be followed by tool messages: {waiting}."
        if role == "system" and any(each.get("role") != "system" for each in messages[:index]):
            yield f"{path}: System message must be at the beginning."
        calls = _as_records(message.get("tool_calls"))
        waiting = [str(call.get("id")) for call in calls]
        yield from _call_objections(calls, path)
        if not calls or message.get("content") is not None:
            yield from _content_objections(message.get("content"), path)
    if waiting:
        yield f"An assistant message with 'tool_calls' must be followed by tool messages: {waiting}."


def _call_objections(calls: Sequence[RequestBody], path: str) -> Iterator[str]:
    for call in calls:
        name, call_id = _nested_record(call, "function").get("name"), str(call.get("id"))
        if not _NAME.fullmatch(str(name)):
            yield f"Invalid '{path}.tool_calls.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
        if not 1 <= len(call_id) <= 40:
            yield f"Invalid '{path}.tool_calls.id': string too long. Expected a string with maximum length 40."
    if len({str(call.get("id")) for call in calls}) < len(calls):
        yield f"{path}.tool_calls: two calls have one id."


def _content_objections(content: JsonValue, path: str) -> Iterator[str]:
    if isinstance(content, str):
        if not content.strip():
            yield f"{path}.content: text must contain non-whitespace text."
        return
    blocks = _as_records(content)
    if not blocks:
        yield f"Invalid '{path}.content': a string or a list of at least one part is needed."
    for block in blocks:
        text = block.get("text")
        if isinstance(text, str) and not text.strip():
            yield f"{path}.content: text content blocks must contain non-whitespace text."


def _check_responses(body: RequestBody) -> Iterator[str]:
    yield from _tool_objections(_as_records(body.get("tools")), _NAME)
    input_value = body.get("input")
    if isinstance(input_value, str):
        yield from _content_objections(input_value, "input")
        return
    items = _as_records(input_value)
    if not items:
        yield "One of 'input' or 'previous_response_id' must be provided."
    calls = [item for item in items if item.get("type") == "function_call"]
    for index, item in enumerate(items):
        path, kind = f"input[{index}]", item.get("type") or "message"
        if kind == "message":
            yield from _content_objections(item.get("content"), path)
        if kind == "function_call" and not _NAME.fullmatch(str(item.get("name"))):
            yield f"Invalid '{path}.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
        if kind in ("function_call", "function_call_output") and not 1 <= len(str(item.get("call_id"))) <= 64:
            yield f"Invalid '{path}.call_id': string too long. Expected a string with maximum length 64."
        if kind == "reasoning" and (
            index + 1 == len(items) or items[index + 1].get("role", "assistant") != "assistant"
        ):
            yield f"{path}: an item of type 'reasoning' was provided without its required following item."
    yield from _pair_objections(
        [str(call.get("call_id")) for call in calls],
        [str(item.get("call_id")) for item in items if item.get("type") == "function_call_output"],
    )


def _pair_objections(calls: Sequence[str], results: Sequence[str]) -> Iterator[str]:
    if missing := Counter(calls) - Counter(results):
        yield f"No tool output found for function call {next(iter(missing))}."
    if stray := Counter(results) - Counter(calls):
        yield f"No tool call found for function call output with call_id {next(iter(stray))}."
    if len(set(calls)) < len(calls):
        yield "Duplicate call_id in input."


def _check_anthropic(body: RequestBody) -> Iterator[str]:
    messages = _as_records(body.get("messages"))
    yield from _tool_objections(_as_records(body.get("tools")), _LONG_NAME)
    if not isinstance(body.get("max_tokens"), int) or int(str(body["max_tokens"])) < 1:
        yield "max_tokens: Field required"
    if body.get("system") is not None:
        yield from _content_objections(body.get("system"), "system")
    if not messages:
        yield "messages: at least one message is required"
    elif messages[0].get("role") != "user":
        yield "messages: first message must use the user role"
    elif messages[-1].get("role") == "assistant":
        yield "This model does not support assistant message prefill. The conversation must end with a user message."
    waiting: list[str] = []
    used_ids: set[str] = set()
    for index, message in enumerate(messages):
        path, content = f"messages.{index}", message.get("content")
        if message.get("role") not in ("user", "assistant"):
            yield f"{path}.role: Input should be 'user' or 'assistant'"
        yield from _content_objections(content, path)
        blocks = _as_records(content)
        for block in blocks:
            yield from _block_objections(block, path)
        calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        first = [block.get("type") for block in blocks[: len(results)]]
        if Counter(results) != Counter(waiting) or first != ["tool_result"] * len(results):
            yield f"{path}: `tool_use` ids {waiting} need `tool_result` blocks immediately after, found {results}"
        if used_ids.intersection(calls) or len(set(calls)) < len(calls):
            yield f"{path}: `tool_use` ids must be unique"
        used_ids.update(calls)
        waiting = calls
    if waiting:
        yield f"`tool_use` ids were found without `tool_result` blocks immediately after: {waiting}"
    yield from _thinking_objections(body, messages)


def _thinking_objections(body: RequestBody, messages: Sequence[RequestBody]) -> Iterator[str]:
    thinking, max_tokens = _nested_record(body, "thinking"), body.get("max_tokens")
    if thinking.get("type") not in ("enabled", "adaptive"):
        return
    if body.get("temperature", 1) != 1:
        yield "`temperature` may only be set to 1 when thinking is enabled."
    if thinking.get("type") == "adaptive":
        return
    if _nested_record(body, "tool_choice").get("type") in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."
    budget = thinking.get("budget_tokens")
    if not isinstance(budget, int) or budget < _MIN_THINKING_TOKENS:
        yield f"thinking.enabled.budget_tokens: Input should be greater than or equal to {_MIN_THINKING_TOKENS}"
    elif isinstance(max_tokens, int) and max_tokens <= budget:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`."
    for i in range(len(messages) - 1, -1, -1):
        kinds = [block.get("type") for block in _as_records(messages[i].get("content"))]
        if messages[i].get("role") == "user" and kinds[:1] != ["tool_result"]:
            return
        if "tool_use" in kinds and kinds[0] not in ("thinking", "redacted_thinking"):
            yield f"messages.{i}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kinds[0]}`."


def _block_objections(block: RequestBody, path: str) -> Iterator[str]:
    match block.get("type"):
        case "tool_use":
            if not _LONG_NAME.fullmatch(str(block.get("name"))):
                yield f"{path}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            if not _ID.fullmatch(str(block.get("id"))):
                yield f"{path}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        case "tool_result":
            inner = block.get("content")
            if inner is not None:
                yield from _content_objections(inner, f"{path}.tool_result")
        case "image":
            source = _nested_record(block, "source")
            if source.get("type") == "base64" and source.get("media_type") not in _IMAGE_TYPES:
                yield f"{path}.image.source.base64.media_type: Input should be one of {sorted(_IMAGE_TYPES)}"
        case "thinking":
            if block.get("signature") != THINKING_SIGNATURE:
                yield f"{path}: Invalid `signature` in `thinking` block"


def _tool_objections(tools: Sequence[RequestBody], pattern: re.Pattern[str]) -> Iterator[str]:
    names = [str(tool.get("name")) for tool in tools]
    for name in names:
        if not pattern.fullmatch(name):
            yield f"tools.name: {name!r} does not match the pattern of names."
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."


def _iterate_texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield key
            yield from _iterate_texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _iterate_texts(each)


def _as_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _as_records(value: JsonValue) -> list[RequestBody]:
    return [each for each in _as_list(value) if isinstance(each, dict)]


def _nested_record(value: RequestBody, key: str) -> RequestBody:
    nested = value.get(key)
    return nested if isinstance(nested, dict) else {}


_CHECKS: Mapping[str, Callable[[RequestBody], Iterator[str]]] = {
    "/chat/completions": _check_chat,
    "/responses": _check_responses,
    "/messages": _check_anthropic,
}
