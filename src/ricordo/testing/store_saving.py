"""Checks of saving: entries are returned unchanged, without secrets and without forgotten memories."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from ricordo.errors import EntryNotFound, InvalidEntry, ScopeMismatch, ScopeRequired
from ricordo.scope import Scope
from ricordo.stores.contract import Forgets, KeepsTombstones, Store
from ricordo.testing.store_subject import (
    DEFAULT_SCOPE,
    ManualClock,
    StoreCheck,
    StoreSubject,
    list_entries,
    recall_newest,
    require,
    store_check,
)
from ricordo.workspace.entry import Entry

__all__ = ["SAVING_CHECKS"]


_MAX_HITS = 200
_KEY = "AKIA" + "IOSFODNN7QWERTYX"
_PAST_TIME = datetime(2024, 2, 29, 23, 59, 59, 999_000, tzinfo=UTC)
_PLAIN_ENTRY = Entry(content="The walnut door of the shop is red.", kind="fact", tags=("shop", "door"))
_DIFFICULT_ENTRIES: tuple[Entry, ...] = (
    Entry(content="walnut\nTwo lines,\n\n\nand more after a gap.\n  indented\ttabbed", tags=("a b", "C", "über")),
    Entry(content="# walnut heading\n\n## Facts\n\n- bullet [kind:: goal] ^01hx #tag\n---\n```\nfence", kind="lesson"),
    Entry(content='walnut {"json": [1, "two"]}\n</memory>\n<!-- note --> | cell | \\n \\', kind="decision"),
    Entry(content="walnut 🦊👩‍👩‍👧‍👦 café cafe\u0301 naïve", tags=("🦊",)),
    Entry(content="walnut العربية תיבה \u200fשלום\u200e", tags=("שלום",), kind="preference"),
    Entry(content="walnut 我们只从主分支部署。日本語と한국어", tags=("部署",)),
    Entry(content="\n\n  walnut between white space \t\n \n"),
    Entry(content="walnut with a time of its own", time=_PAST_TIME, tags=()),
    Entry(content="walnut, and every field", pinned=True, confidence=0.25, by="agent", extra=(("mood", "calm: [x]"),)),
)
_KINDS = ("fact", "decision", "preference", "lesson", "preamble", "recipe of the house", "Ключ #1 [x:: y]", "FACT")


@store_check("G1")
async def _an_entry_needs_content_and_gets_its_time_its_id_and_its_scope(subject: StoreSubject, folder: Path) -> None:
    clock = ManualClock()
    async with subject.open_store(folder, clock=clock) as store:
        for content in ("", " \n\t"):
            try:
                await store.save(Entry(content=content))
            except InvalidEntry:
                continue
            raise AssertionError("A store: an entry without content is saved.")
        saved = await store.save(Entry(content="We deploy only from main."))
        require(saved.time == clock.time, "a missing time is not the time of saving")
        require(bool(saved.id), "an entry that was saved has no id")
        require(saved.scope == DEFAULT_SCOPE, "an entry that was saved is not its scope's")
        dated = await store.save(Entry(content="We use pnpm.", time=_PAST_TIME))
        require(dated.time == _PAST_TIME, "a given time is not kept")
        require(dated.id != saved.id, "two entries have one id")
        require(
            bool(await list_entries(subject, store)) == (subject.capacity != 0),
            "it says of what it keeps what is not so",
        )


@store_check("I1", "memory")
async def _what_was_saved_comes_out_as_it_was_whatever_its_script_and_markup(
    subject: StoreSubject, folder: Path
) -> None:
    async with subject.open_with_entries(folder, _DIFFICULT_ENTRIES) as (store, saved):
        for entry, original in zip(saved, _DIFFICULT_ENTRIES, strict=True):
            _require_same(entry, replace(original, time=original.time or entry.time))
        _require_same_entries(await list_entries(subject, store), saved)
        hits = [hit.entry for hit in await store.recall("walnut", limit=_MAX_HITS)]
        if subject.recalls != "sessions":
            _require_same_entries(hits, saved)
        else:
            require(bool(hits), "the session in which something was saved is not found")


@store_check("I1", "memory")
async def _a_megabyte_is_kept_whole(subject: StoreSubject, folder: Path) -> None:
    long = Entry(content="walnut " + "many more words, one after another. " * (1024 * 1024 // 36), tags=("long",))
    require(len(long.content) > 1_000_000, "the check is too small")
    async with subject.open_with_entries(folder, [_PLAIN_ENTRY, long]) as (store, saved):
        _require_same(saved[1], replace(long, time=saved[1].time))
        _require_same_entries(await list_entries(subject, store), saved)
        hits = [hit.entry for hit in await store.recall("walnut", limit=2)]
        if subject.recalls == "entries":
            _require_same_entries(hits, saved)


@store_check("I5", "memory")
async def _any_kind_is_kept_and_what_is_pinned_by_the_kind_preamble_is_in_the_prompt(
    subject: StoreSubject, folder: Path
) -> None:
    entries = [Entry(content=f"Item {number} is a walnut.", kind=kind) for number, kind in enumerate(_KINDS)]
    async with subject.open_with_entries(folder, entries) as (store, saved):
        _require_same_entries(await list_entries(subject, store), saved)
        pinned = next(entry for entry in saved if entry.kind == "preamble")
        require(pinned.content in await store.preamble(), "what has the kind preamble is not in the preamble")


@store_check("I5", "memory")
async def _every_field_of_an_entry_is_kept(subject: StoreSubject, folder: Path) -> None:
    async with subject.open_with_entries(folder, _DIFFICULT_ENTRIES[-1:]) as (store, [saved]):
        [loaded] = await list_entries(subject, store)
        for name in ("id", "scope", "by", "confidence", "pinned", "extra", "state", "source"):
            expected = getattr(saved, name)
            require(getattr(loaded, name) == expected, f"{name} is {getattr(loaded, name)!r} and was {expected!r}")


@store_check("privacy")
async def _a_secret_is_taken_out_before_anything_is_kept(subject: StoreSubject, folder: Path) -> None:
    async with subject.open_store(folder) as store:
        saved = await store.save(Entry(content=f"The walnut key is {_KEY}.", tags=("walnut", _KEY)))
        require(_KEY not in saved.content and _KEY not in saved.tags, "a secret is kept")
        texts = [
            saved.content,
            await store.preamble(),
            *(entry.content for entry in await list_entries(subject, store)),
        ]
        require(not any(_KEY in text for text in texts), "a secret comes out again")
        recalled_hits = await store.recall("walnut", limit=5)
        require(not any(_KEY in hit.entry.content for hit in recalled_hits), "a secret is recalled")
    require(not await run_sync(_files_with, folder, _KEY.encode()), "a secret is written to a file")


@store_check("scope")
async def _nothing_is_bound_without_a_scope_or_saved_for_another_one(subject: StoreSubject, folder: Path) -> None:
    async with subject.open_backend(folder, DEFAULT_SCOPE) as backend:
        try:
            backend.bind(None)
        except ScopeRequired:
            pass
        else:
            raise AssertionError("A store: it is bound without a scope.")
        store = backend.bind(DEFAULT_SCOPE)
        for other in (Scope(user="me", project="farm"), Scope(user="you", project="shop")):
            try:
                await store.save(replace(_PLAIN_ENTRY, scope=other, reason="It holds there too."))
            except ScopeMismatch:
                continue
            raise AssertionError(f"A store: an entry for {other} is saved in the store of {store.scope}.")


@store_check("I6", "memory")
async def _saves_at_the_same_time_are_all_kept_and_once_each(subject: StoreSubject, folder: Path) -> None:
    contents = [f"Walnut number {number}." for number in range(12)]
    async with subject.open_store(folder) as store:
        async with anyio.create_task_group() as group:
            for content in contents:
                group.start_soon(store.save, Entry(content=content))
        entries = await list_entries(subject, store)
    require(
        sorted(entry.content for entry in entries) == sorted(contents), "of what is saved at once some is lost or twice"
    )
    require(len({entry.id for entry in entries}) == len(contents), "two entries have one id")


@store_check("capacity", "capacity")
async def _a_full_store_lets_go_of_the_oldest_and_of_no_other(subject: StoreSubject, folder: Path) -> None:
    capacity = subject.capacity or 0
    entries = [Entry(content=f"Walnut number {number}.") for number in range(capacity + 3)]
    async with subject.open_with_entries(folder, entries) as (store, saved):
        kept_ids = [entry.id for entry in await recall_newest(store, _MAX_HITS + capacity)]
        require(
            kept_ids == [entry.id for entry in reversed(saved[3:])],
            "what a full store keeps is not what was saved last",
        )


@store_check("I10", "memory", "forgetting")
async def _what_is_forgotten_is_gone_from_everywhere_and_nothing_else_is(subject: StoreSubject, folder: Path) -> None:
    entries = [replace(_PLAIN_ENTRY, content=f"The {word} door is a walnut.") for word in ("ochre", "cobalt", "amber")]
    async with subject.open_with_entries(folder, entries) as (store, saved):
        forgetter = store.offers(Forgets)
        require(forgetter is not None or subject.forgets is None, "it does not forget, and declares that it does")
        if forgetter is None:
            return
        forgotten = await forgetter.forget(saved[1].id, who="user", why="It was painted.")
        _require_same(forgotten, saved[1])
        await _require_forgotten(subject, store, "cobalt", [saved[0], saved[2]])
        for unknown in (forgotten.id, "no-such-id"):
            try:
                await forgetter.forget(unknown, who="user")
            except EntryNotFound:
                continue
            raise AssertionError("A store: what is not there is forgotten without a word.")
    if subject.is_durable:
        async with subject.open_store(folder) as store:
            await _require_forgotten(subject, store, "cobalt", [saved[0], saved[2]])


@store_check("I10", "memory", "forgetting")
async def _what_is_forgotten_leaves_a_record_without_content_and_is_not_taken_in_again(
    subject: StoreSubject, folder: Path
) -> None:
    digests = set[str]()
    for name in ("one", "two"):
        copy_folder = folder / name
        await run_sync(copy_folder.mkdir)
        entries = [replace(_PLAIN_ENTRY, content=f"The {word} door is a walnut.") for word in ("ochre", "cobalt")]
        async with subject.open_with_entries(copy_folder, entries) as (store, saved):
            forgetter = store.offers(Forgets)
            if forgetter is None:
                return
            forgotten = await forgetter.forget(saved[1].id, who="user", why="It was painted.")
            digests.add(await _require_tombstone(subject, store, forgotten))
            again = [saved[0], *([] if subject.is_durable else [await _save_again(store, forgotten)])]
            _require_same_entries(await list_entries(subject, store), again)
        if subject.is_durable:
            async with subject.open_store(copy_folder) as store:
                digests.add(await _require_tombstone(subject, store, forgotten))
                await _save_again(store, forgotten)
    require(len(digests) == 2, "who knows the words can tell the record of them: its digest needs a key of the store")


async def _require_tombstone(subject: StoreSubject, store: Store, forgotten: Entry) -> str:
    """Check that a forgotten entry has a record and can't be saved again; return its digest."""
    tombstone_store = store.offers(KeepsTombstones)
    if tombstone_store is None:
        raise AssertionError("A store: it forgets, and keeps no record of that.")
    tombstones = [row for row in await tombstone_store.tombstones() if row.id == forgotten.id]
    require(
        [(bool(row.at), row.by) for row in tombstones] == [(True, "user")],
        "it does not say what was forgotten when by whom",
    )
    tombstone_text = repr(await tombstone_store.tombstones()).casefold()
    require(
        not any(word in tombstone_text for word in ("cobalt", "walnut", "painted")),
        "the record of what was forgotten tells it",
    )
    before = len(await list_entries(subject, store))
    elsewhere = replace(forgotten, id=forgotten.id[:-1] + ("0" if forgotten.id[-1] != "0" else "1"))
    for copy in (
        forgotten,
        replace(forgotten, time=None),
        elsewhere,
        replace(elsewhere, content=f" {forgotten.content.upper()}"),
    ):
        try:
            await store.save(copy)
        except InvalidEntry:
            continue
        raise AssertionError("A store: what was forgotten is taken in again.")
    require(
        len(await list_entries(subject, store)) == before, "what was forgotten is there again, though it was refused"
    )
    return tombstones[0].digest


async def _save_again(store: Store, forgotten: Entry) -> Entry:
    """Save the words of a forgotten entry as a new memory."""
    return await store.save(Entry(content=forgotten.content, tags=forgotten.tags))


async def _require_forgotten(subject: StoreSubject, store: Store, word: str, others: Sequence[Entry]) -> None:
    hits = [hit.entry for hit in await store.recall(word, limit=_MAX_HITS)]
    require(not any(word in entry.content for entry in hits), "what was forgotten is recalled")
    require(word not in await store.preamble(), "what was forgotten is in the preamble")
    _require_same_entries(await list_entries(subject, store), others)
    if subject.recalls != "sessions":
        entries = [hit.entry for hit in await store.recall("walnut", limit=_MAX_HITS)]
        _require_same_entries(entries, others)


def _require_same_entries(actual: Sequence[Entry], expected: Sequence[Entry]) -> None:
    """Check that both are the same entries, in any order."""
    by_id = {entry.id: entry for entry in actual}
    require(len(actual) == len(by_id), "an entry is there twice")
    missing = Counter(entry.id for entry in expected) - Counter([*by_id])
    require(not missing, f"{len(missing)} of {len(expected)} entries are lost")
    require(len(actual) == len(expected), f"{len(actual)} entries are there and {len(expected)} were saved")
    for entry in expected:
        _require_same(by_id[entry.id], entry)


def _require_same(actual: Entry, expected: Entry) -> None:
    for name in ("content", "kind", "tags", "time"):
        one, other = getattr(actual, name), getattr(expected, name)
        sizes = f" ({len(actual.content)} and {len(expected.content)} characters)" if name == "content" else ""
        require(one == other, f"{name} is {str(one)[:80]!r} and was {str(other)[:80]!r}{sizes}")


def _files_with(folder: Path, data: bytes) -> list[Path]:
    return [path for path in _files(folder) if data in path.read_bytes()]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


SAVING_CHECKS: tuple[StoreCheck, ...] = (
    _an_entry_needs_content_and_gets_its_time_its_id_and_its_scope,
    _what_was_saved_comes_out_as_it_was_whatever_its_script_and_markup,
    _a_megabyte_is_kept_whole,
    _any_kind_is_kept_and_what_is_pinned_by_the_kind_preamble_is_in_the_prompt,
    _every_field_of_an_entry_is_kept,
    _a_secret_is_taken_out_before_anything_is_kept,
    _nothing_is_bound_without_a_scope_or_saved_for_another_one,
    _saves_at_the_same_time_are_all_kept_and_once_each,
    _a_full_store_lets_go_of_the_oldest_and_of_no_other,
    _what_is_forgotten_is_gone_from_everywhere_and_nothing_else_is,
    _what_is_forgotten_leaves_a_record_without_content_and_is_not_taken_in_again,
)
"""The checks of this module. Call each with its own folder."""
