"""Generated messages and histories for property tests."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from ricordo.messages import JsonValue, Media, Message, Text, Thinking, ToolCall, ToolResult, Unknown, Usage

__all__ = ["any_text", "json_values", "messages", "parts", "times"]


def _joined(value: str) -> str:
    """Join surrogates that stand side by side, as every JSON reader does."""
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if not value.isascii() else value


def any_text(max_size: int = 40) -> st.SearchStrategy[str]:
    alphabet = st.one_of(st.characters(), st.sampled_from('\x00\n\r\u2028\u2029\x85\ud83d\ude00"\\😀한é{}'))
    return st.text(alphabet, max_size=max_size).map(_joined)


def json_values() -> st.SearchStrategy[JsonValue]:
    numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
    leaves: st.SearchStrategy[JsonValue] = st.one_of(st.none(), st.booleans(), numbers, any_text(10))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(any_text(5), inner, max_size=3)),
        max_leaves=8,
    )


def times() -> st.SearchStrategy[datetime]:
    zones = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
    return st.datetimes(timezones=st.one_of(st.just(UTC), zones))


_optional_text = st.one_of(st.none(), any_text(10))
_content = st.one_of(
    st.builds(Text, text=any_text()),
    st.builds(Media, media_type=any_text(10), uri=any_text(), name=_optional_text, description=_optional_text),
    st.builds(
        Unknown,
        kind=st.one_of(st.sampled_from(["text", "unknown", "video"]), any_text(5)),
        raw=st.one_of(
            st.sampled_from(['{"kind":"video"}', '{"kind":"video","n":1.0}', '{"kind": "video"}']), any_text()
        ),
    ),
)


def parts() -> st.SearchStrategy[Text | Media | Unknown | Thinking | ToolCall | ToolResult]:
    return st.one_of(
        _content,
        st.builds(Thinking, text=any_text(), signature=_optional_text),
        st.builds(ToolCall, id=any_text(8), name=any_text(8), arguments=any_text()),
        st.builds(
            ToolResult,
            call_id=any_text(8),
            parts=st.lists(_content, max_size=3).map(tuple),
            name=_optional_text,
            is_error=st.booleans(),
        ),
    )


def messages() -> st.SearchStrategy[Message]:
    fields = st.sampled_from(
        [5, {}, {"role": "x"}, {"v": 1}, {"v": 2}, {"v": True}, {"seen": [1, None]}, {"v": 3, "seen": {"a": 1.5}}]
    )
    metadata = st.dictionaries(any_text(6), json_values(), max_size=3)
    counts = st.integers(0, 10**9)
    return st.builds(
        Message,
        role=st.sampled_from(["system", "user", "assistant", "tool"]),
        parts=st.lists(parts(), max_size=4).map(tuple),
        id=any_text(8),
        time=st.one_of(st.none(), times()),
        name=_optional_text,
        parent=_optional_text,
        usage=st.one_of(st.none(), st.builds(Usage, input=counts, output=counts, cache_read=counts)),
        metadata=st.one_of(metadata, st.builds(lambda rest, kept: {**rest, "ricordo.fields": kept}, metadata, fields)),
    )
