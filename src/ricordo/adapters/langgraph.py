"""LangGraph: a `BaseStore` whose items are entries of a memory (extra `langgraph`).

An item is one entry: its text is the `content` of the value, or the whole value as JSON; namespace, key and the rest of
the value are its metadata. So an item is recalled, shown, edited, forgotten and undone like every other memory.

Invariant: the value that was put is the value that is read, except for secrets, which are never stored.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio

from ricordo.adapters.core import Bridge, framework_missing
from ricordo.errors import InvalidMessage, MemoryClosed
from ricordo.messages import JsonValue
from ricordo.messages.json_text import dumps, loads
from ricordo.models import Embedder
from ricordo.runtime import Settings
from ricordo.runtime.memory import Memory
from ricordo.scope import Scope
from ricordo.workspace.entry import Entry

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
    )
except ImportError as error:
    raise framework_missing("LangGraph", "langgraph") from error

__all__ = ["RicordoStore"]


_NAMESPACE = "langgraph-namespace"
_KEY = "langgraph-key"
_VALUE = "langgraph-value"
_INDEX = "langgraph-index"
_CHANGED = "langgraph-changed"
_MINUTES = "langgraph-minutes"
_EXPIRES = "langgraph-expires"
_MOST_HITS = 1000


class RicordoStore(Bridge, BaseStore):
    """A store of LangGraph, `create_agent(..., store=store)`; use it in a `with` or `async with` block."""

    supports_ttl = True

    def __init__(
        self,
        *,
        scope: Scope | None,
        memory: str | Path | Memory | None = None,
        embedder: Embedder | str | None = None,
        settings: Settings | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        """Use the memory of `scope` in the folder `memory`, or one that is open; the options are those of
        `Memory.open`. `ttl` has the default lifetime of items in minutes.
        """
        self.ttl_config = ttl
        self._given = memory if isinstance(memory, Memory) else None
        self._opening = partial(
            Memory.open,
            None if isinstance(memory, Memory) else memory,
            scope=scope,
            embedder=embedder,
            settings=settings,
        )
        self._memory: Memory | None = None
        self._lock = anyio.Lock()

    @property
    def memory(self) -> Memory:
        """The open memory. Raises: MemoryClosed outside of the block."""
        if self._memory is None:
            raise MemoryClosed("This store is closed: use it in its `with` or `async with` block.")
        return self._memory

    async def open(self) -> None:
        """Open the memory."""
        self._memory = self._given or await self._opening()

    async def close(self) -> None:
        """Close the memory, unless it was given open; a second call does nothing."""
        memory, self._memory = self._memory, None
        if memory is not None and self._given is None:
            await memory.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations, the reads before the writes; return their results in the order of `ops`."""
        return self.run_blocking(partial(self._carry_out, list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the same for those who await."""
        return await self.run(partial(self._carry_out, list(ops)))

    async def _carry_out(self, ops: Sequence[Op]) -> list[Result]:
        async with self._lock:
            results: list[Result] = [None] * len(ops)
            puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
            for index, op in enumerate(ops):
                if isinstance(op, PutOp):
                    puts[op.namespace, op.key] = op
                elif isinstance(op, GetOp):
                    results[index] = await self._get(op)
                elif isinstance(op, SearchOp):
                    results[index] = cast("Result", await self._search(op))
                else:
                    results[index] = await self._list_namespaces(op)
            for put in puts.values():
                await self._put(put)
            return results

    async def _get(self, op: GetOp) -> Item | None:
        found = await self._entries(op.namespace, op.key)
        if not found:
            return None
        await self._refresh(found[:1], wanted=op.refresh_ttl)
        return Item(**_read_item(found[0]))

    async def _put(self, op: PutOp) -> None:
        found = await self._entries(op.namespace, op.key)
        if op.value is None:
            for entry in found:
                await self.memory.forget(entry.id, by="agent")
            return
        ttl = op.ttl if op.ttl is not None else (self.ttl_config or {}).get("default_ttl")
        content, metadata = _write_item(op, ttl, datetime.now(UTC))
        if found:
            await self.memory.update(found[0].id, content=content, metadata=metadata, by="agent")
        else:
            await self.memory.remember(content, metadata=metadata, by="agent")

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        entries = [
            entry
            for entry in await self._all_entries()
            if _namespace(entry)[: len(op.namespace_prefix)] == op.namespace_prefix
            and _matches(_read_item(entry)["value"], op.filter or {})
        ]
        scores: dict[str, float] = {}
        if op.query:
            keys = [entry.metadata[_KEY] for entry in entries if entry.metadata.get(_INDEX) != "false"]
            hits = (
                await self.memory.recall(op.query, limit=_MOST_HITS, metadata={_KEY: keys}, said=False) if keys else []
            )
            scores = {hit.entry.id: hit.score for hit in hits}
            entries = sorted((each for each in entries if each.id in scores), key=lambda each: -scores[each.id])
        page = entries[op.offset : op.offset + op.limit]
        await self._refresh(page, wanted=op.refresh_ttl)
        return [SearchItem(**_read_item(entry), score=scores.get(entry.id)) for entry in page]

    async def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        namespaces = {_namespace(entry) for entry in await self._all_entries()}
        wanted = [each for each in namespaces if all(_fits(each, rule) for rule in op.match_conditions or ())]
        cut = sorted({each[: op.max_depth] for each in wanted})
        return cut[op.offset : op.offset + op.limit]

    async def _entries(self, namespace: Sequence[str], key: str) -> list[Entry]:
        wanted = {_NAMESPACE: dumps(list(namespace)), _KEY: key}
        return await self._without_expired(await self.memory.entries(metadata=wanted))

    async def _all_entries(self) -> list[Entry]:
        """Return the entry of each item, the newest one first."""
        entries = [entry for entry in await self.memory.entries() if _NAMESPACE in entry.metadata]
        newest: dict[tuple[str, str], Entry] = {}
        for entry in await self._without_expired(entries):
            newest.setdefault((entry.metadata[_NAMESPACE], entry.metadata[_KEY]), entry)
        return [*newest.values()]

    async def _without_expired(self, entries: Sequence[Entry]) -> list[Entry]:
        now = datetime.now(UTC)
        current: list[Entry] = []
        for entry in entries:
            expires = entry.metadata.get(_EXPIRES)
            if expires and datetime.fromisoformat(expires) <= now:
                await self.memory.forget(entry.id, reason="its lifetime is over", by="agent")
            else:
                current.append(entry)
        return current

    async def _refresh(self, entries: Sequence[Entry], *, wanted: bool) -> None:
        """Let the lifetime of items that were read begin anew."""
        for entry in entries:
            if wanted and (minutes := entry.metadata.get(_MINUTES)):
                metadata = {**entry.metadata, **_expiry(float(minutes), datetime.now(UTC))}
                await self.memory.update(entry.id, metadata=metadata, by="agent")


def _write_item(op: PutOp, ttl: float | None, now: datetime) -> tuple[str, dict[str, str]]:
    """Return the content and the metadata of the entry for an item."""
    value = dict(op.value or {})
    metadata = {_NAMESPACE: dumps(list(op.namespace)), _KEY: op.key, _CHANGED: now.isoformat()}
    if op.index is False:
        metadata[_INDEX] = "false"
    if ttl is not None:
        metadata |= {_MINUTES: repr(ttl), **_expiry(ttl, now)}
    text = _find_text(value)
    # an entry has no space around its text, and one line break looks like another
    if text and text == " ".join(text.split()):
        return text, {**metadata, _VALUE: dumps(_with_text(value, ""))}
    return dumps(value), metadata


def _read_item(entry: Entry) -> dict[str, Any]:
    """Return the fields of the item that an entry is."""
    rest = entry.metadata.get(_VALUE)
    try:
        value = loads(entry.content) if rest is None else _with_text(loads(rest), entry.content)
    except InvalidMessage:
        # a person wrote a text in the place of the JSON
        value = entry.content
    saved = entry.time or datetime.now(UTC)
    changed = entry.metadata.get(_CHANGED)
    return {
        "namespace": _namespace(entry),
        "key": entry.metadata[_KEY],
        "value": value if isinstance(value, dict) else {"content": value},
        "created_at": saved,
        "updated_at": datetime.fromisoformat(changed) if changed else saved,
    }


def _namespace(entry: Entry) -> tuple[str, ...]:
    value = loads(entry.metadata[_NAMESPACE])
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _expiry(minutes: float, now: datetime) -> dict[str, str]:
    return {_EXPIRES: (now + timedelta(minutes=minutes)).isoformat()}


def _find_text(value: JsonValue) -> str | None:
    """Return the text below `content`, as deep as that key goes on; None if there is none."""
    while isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _with_text(value: JsonValue, text: str) -> JsonValue:
    if isinstance(value, dict) and "content" in value:
        return {**value, "content": _with_text(value["content"], text)}
    return text


def _fits(namespace: Sequence[str], rule: MatchCondition) -> bool:
    length = len(rule.path)
    part = namespace[:length] if rule.match_type == "prefix" else namespace[-length:] if length else ()
    return len(part) == length and all(want in {"*", have} for want, have in zip(rule.path, part, strict=True))


def _matches(value: JsonValue, wanted: Mapping[str, Any]) -> bool:
    """Return whether a value has all that is wanted, by equality or by operators such as `$gt`."""
    return isinstance(value, dict) and all(_agrees(value.get(name), want) for name, want in wanted.items())


def _agrees(have: Any, want: Any) -> bool:
    if isinstance(want, dict) and want and all(name.startswith("$") for name in want):
        return all(_compare(have, operator, operand) for operator, operand in want.items())
    if isinstance(want, dict):
        return _matches(have, want)
    return bool(have == want)


def _compare(have: Any, operator: str, operand: Any) -> bool:
    match operator:
        case "$eq":
            return bool(have == operand)
        case "$ne":
            return bool(have != operand)
        case "$gt" | "$gte" | "$lt" | "$lte":
            try:
                # as LangGraph's own stores do: texts of numbers are numbers
                left, right = float(have), float(operand)
            except (TypeError, ValueError):
                return False
            return {"$gt": left > right, "$gte": left >= right, "$lt": left < right, "$lte": left <= right}[operator]
    raise InvalidMessage(f"A filter has the operators $eq, $ne, $gt, $gte, $lt and $lte, not {operator!r}.")
