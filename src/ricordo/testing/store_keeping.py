"""What a store has to do with what it is given to keep: the same comes out again, and nothing of what may not stay."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
from anyio.to_thread import run_sync

from ricordo.errors import EntryNotFound, InvalidEntry, ScopeMismatch, ScopeRequired
from ricordo.scopes import Scope
from ricordo.stores.capabilities import Forgets, KeepsTombstones
from ricordo.stores.contract import Store
from ricordo.testing.store_subject import SCOPE, SetClock, StoreCheck, StoreSubject, check, hold, kept, newest
from ricordo.workspace.entry import Entry

__all__ = ["KEEPING"]

_MANY = 200
_KEY = "AKIA" + "IOSFODNN7QWERTYX"
_EARLIER = datetime(2024, 2, 29, 23, 59, 59, 999_000, tzinfo=UTC)

_PLAIN = Entry(content="The walnut door of the shop is red.", kind="fact", tags=("shop", "door"))
_HARD: tuple[Entry, ...] = (
    Entry(content="walnut\nTwo lines,\n\n\nand more after a gap.\n  indented\ttabbed", tags=("a b", "C", "über")),
    Entry(content="# walnut heading\n\n## Facts\n\n- bullet [kind:: goal] ^01hx #tag\n---\n```\nfence", kind="lesson"),
    Entry(content='walnut {"json": [1, "two"]}\n</memory>\n<!-- note --> | cell | \\n \\', kind="decision"),
    Entry(content="walnut 🦊👩‍👩‍👧‍👦 café cafe\u0301 naïve", tags=("🦊",)),
    Entry(content="walnut العربية תיבה \u200fשלום\u200e", tags=("שלום",), kind="preference"),
    Entry(content="walnut 我们只从主分支部署。日本語と한국어", tags=("部署",)),
    Entry(content="\n\n  walnut between white space \t\n \n"),
    Entry(content="walnut with a time of its own", time=_EARLIER, tags=()),
    Entry(content="walnut, and every field", pinned=True, confidence=0.25, by="agent", extra=(("mood", "calm: [x]"),)),
)
_KINDS = ("fact", "decision", "preference", "lesson", "preamble", "recipe of the house", "Ключ #1 [x:: y]", "FACT")


@check("G1")
async def _an_entry_needs_content_and_gets_its_time_its_id_and_its_scope(subject: StoreSubject, folder: Path) -> None:
    clock = SetClock()
    async with subject.store(folder, clock=clock) as store:
        for content in ("", " \n\t"):
            try:
                await store.save(Entry(content=content))
            except InvalidEntry:
                continue
            raise AssertionError("A store: an entry without content is saved.")
        saved = await store.save(Entry(content="We deploy only from main."))
        hold(saved.time == clock.time, "a missing time is not the time of saving")
        hold(bool(saved.id), "an entry that was saved has no id")
        hold(saved.scope == SCOPE, "an entry that was saved is not its scope's")
        given = await store.save(Entry(content="We use pnpm.", time=_EARLIER))
        hold(given.time == _EARLIER, "a given time is not kept")
        hold(given.id != saved.id, "two entries have one id")
        hold(bool(await kept(subject, store)) == (subject.capacity != 0), "it says of what it keeps what is not so")


@check("I1", "memory")
async def _what_was_saved_comes_out_as_it_was_whatever_its_script_and_markup(
    subject: StoreSubject, folder: Path
) -> None:
    async with subject.after_saving(folder, _HARD) as (store, saved):
        for entry, given in zip(saved, _HARD, strict=True):
            _hold_same(entry, replace(given, time=given.time or entry.time))
        _hold_all_same(await kept(subject, store), saved)
        hits = [hit.entry for hit in await store.recall("walnut", limit=_MANY)]
        if subject.recalls != "sessions":
            _hold_all_same(hits, saved)
        else:
            hold(bool(hits), "the session in which something was saved is not found")


@check("I1", "memory")
async def _a_megabyte_is_kept_whole(subject: StoreSubject, folder: Path) -> None:
    long = Entry(content="walnut " + "many more words, one after another. " * (1024 * 1024 // 36), tags=("long",))
    hold(len(long.content) > 1_000_000, "the check is too small")
    async with subject.after_saving(folder, [_PLAIN, long]) as (store, saved):
        _hold_same(saved[1], replace(long, time=saved[1].time))
        _hold_all_same(await kept(subject, store), saved)
        hits = [hit.entry for hit in await store.recall("walnut", limit=2)]
        if subject.recalls == "entries":
            _hold_all_same(hits, saved)


@check("I5", "memory")
async def _any_kind_is_kept_and_what_is_pinned_by_the_kind_preamble_is_in_the_prompt(
    subject: StoreSubject, folder: Path
) -> None:
    entries = [Entry(content=f"Item {number} is a walnut.", kind=kind) for number, kind in enumerate(_KINDS)]
    async with subject.after_saving(folder, entries) as (store, saved):
        _hold_all_same(await kept(subject, store), saved)
        pinned = next(entry for entry in saved if entry.kind == "preamble")
        hold(pinned.content in await store.preamble(), "what has the kind preamble is not in the preamble")


@check("I5", "memory")
async def _every_field_of_an_entry_is_kept(subject: StoreSubject, folder: Path) -> None:
    async with subject.after_saving(folder, _HARD[-1:]) as (store, [saved]):
        [found] = await kept(subject, store)
        for name in ("id", "scope", "by", "confidence", "pinned", "extra", "state", "source"):
            wanted = getattr(saved, name)
            hold(getattr(found, name) == wanted, f"{name} is {getattr(found, name)!r} and was {wanted!r}")


@check("privacy")
async def _a_secret_is_taken_out_before_anything_is_kept(subject: StoreSubject, folder: Path) -> None:
    async with subject.store(folder) as store:
        saved = await store.save(Entry(content=f"The walnut key is {_KEY}.", tags=("walnut", _KEY)))
        hold(_KEY not in saved.content and _KEY not in saved.tags, "a secret is kept")
        texts = [saved.content, await store.preamble(), *(entry.content for entry in await kept(subject, store))]
        hold(not any(_KEY in text for text in texts), "a secret comes out again")
        found = await store.recall("walnut", limit=5)
        hold(not any(_KEY in hit.entry.content for hit in found), "a secret is recalled")
    hold(not await run_sync(_files_with, folder, _KEY.encode()), "a secret is written to a file")


@check("scope")
async def _nothing_is_bound_without_a_scope_or_saved_for_another_one(subject: StoreSubject, folder: Path) -> None:
    async with subject.opened(folder, SCOPE) as backend:
        try:
            backend.bind(None)
        except ScopeRequired:
            pass
        else:
            raise AssertionError("A store: it is bound without a scope.")
        store = backend.bind(SCOPE)
        for other in (Scope(user="me", project="farm"), Scope(user="you", project="shop")):
            try:
                await store.save(replace(_PLAIN, scope=other, reason="It holds there too."))
            except ScopeMismatch:
                continue
            raise AssertionError(f"A store: an entry for {other} is saved in the store of {store.scope}.")


@check("I6", "memory")
async def _saves_at_the_same_time_are_all_kept_and_once_each(subject: StoreSubject, folder: Path) -> None:
    wanted = [f"Walnut number {number}." for number in range(12)]
    async with subject.store(folder) as store:
        async with anyio.create_task_group() as group:
            for content in wanted:
                group.start_soon(store.save, Entry(content=content))
        entries = await kept(subject, store)
    hold(sorted(entry.content for entry in entries) == sorted(wanted), "of what is saved at once some is lost or twice")
    hold(len({entry.id for entry in entries}) == len(wanted), "two entries have one id")


@check("capacity", "capacity")
async def _a_full_store_lets_go_of_the_oldest_and_of_no_other(subject: StoreSubject, folder: Path) -> None:
    capacity = subject.capacity or 0
    entries = [Entry(content=f"Walnut number {number}.") for number in range(capacity + 3)]
    async with subject.after_saving(folder, entries) as (store, saved):
        found = [entry.id for entry in await newest(store, _MANY + capacity)]
        hold(found == [entry.id for entry in reversed(saved[3:])], "what a full store keeps is not what was saved last")


@check("I10", "memory", "forgetting")
async def _what_is_forgotten_is_gone_from_everywhere_and_nothing_else_is(subject: StoreSubject, folder: Path) -> None:
    entries = [replace(_PLAIN, content=f"The {word} door is a walnut.") for word in ("ochre", "cobalt", "amber")]
    async with subject.after_saving(folder, entries) as (store, saved):
        forgets = store.offers(Forgets)
        hold(forgets is not None or subject.forgets is None, "it does not forget, and declares that it does")
        if forgets is None:
            return
        gone = await forgets.forget(saved[1].id, who="user", why="It was painted.")
        _hold_same(gone, saved[1])
        await _hold_without(subject, store, "cobalt", [saved[0], saved[2]])
        for unknown in (gone.id, "no-such-id"):
            try:
                await forgets.forget(unknown, who="user")
            except EntryNotFound:
                continue
            raise AssertionError("A store: what is not there is forgotten without a word.")
    if subject.keeps:
        async with subject.store(folder) as store:
            await _hold_without(subject, store, "cobalt", [saved[0], saved[2]])


@check("I10", "memory", "forgetting")
async def _what_is_forgotten_leaves_a_record_without_content_and_is_not_taken_in_again(
    subject: StoreSubject, folder: Path
) -> None:
    digests = set[str]()
    for name in ("one", "two"):
        place = folder / name
        await run_sync(place.mkdir)
        entries = [replace(_PLAIN, content=f"The {word} door is a walnut.") for word in ("ochre", "cobalt")]
        async with subject.after_saving(place, entries) as (store, saved):
            forgets = store.offers(Forgets)
            if forgets is None:
                return
            gone = await forgets.forget(saved[1].id, who="user", why="It was painted.")
            digests.add(await _hold_buried(subject, store, gone))
            again = [saved[0], *([] if subject.keeps else [await _said_again(store, gone)])]
            _hold_all_same(await kept(subject, store), again)
        if subject.keeps:
            async with subject.store(place) as store:
                digests.add(await _hold_buried(subject, store, gone))
                await _said_again(store, gone)
    hold(len(digests) == 2, "who knows the words can tell the record of them: its digest needs a key of the store")


async def _hold_buried(subject: StoreSubject, store: Store, gone: Entry) -> str:
    """Hold that there is a record of what was forgotten, and that it is not taken in again; return its digest."""
    keeps = store.offers(KeepsTombstones)
    if keeps is None:
        raise AssertionError("A store: it forgets, and keeps no record of that.")
    found = [row for row in await keeps.tombstones() if row.id == gone.id]
    hold(
        [(bool(row.at), row.by) for row in found] == [(True, "user")], "it does not say what was forgotten when by whom"
    )
    told = repr(await keeps.tombstones()).casefold()
    hold(not any(word in told for word in ("cobalt", "walnut", "painted")), "the record of what was forgotten tells it")
    before = len(await kept(subject, store))
    elsewhere = replace(gone, id=gone.id[:-1] + ("0" if gone.id[-1] != "0" else "1"))
    for copy in (gone, replace(gone, time=None), elsewhere, replace(elsewhere, content=f" {gone.content.upper()}")):
        try:
            await store.save(copy)
        except InvalidEntry:
            continue
        raise AssertionError("A store: what was forgotten is taken in again.")
    hold(len(await kept(subject, store)) == before, "what was forgotten is there again, though it was refused")
    return found[0].digest


async def _said_again(store: Store, gone: Entry) -> Entry:
    """Save the words of what was forgotten as something new, which is a memory of its own."""
    return await store.save(Entry(content=gone.content, tags=gone.tags))


async def _hold_without(subject: StoreSubject, store: Store, word: str, others: Sequence[Entry]) -> None:
    hits = [hit.entry for hit in await store.recall(word, limit=_MANY)]
    hold(not any(word in entry.content for entry in hits), "what was forgotten is recalled")
    hold(word not in await store.preamble(), "what was forgotten is in the preamble")
    _hold_all_same(await kept(subject, store), others)
    if subject.recalls != "sessions":
        found = [hit.entry for hit in await store.recall("walnut", limit=_MANY)]
        _hold_all_same(found, others)


def _hold_all_same(found: Sequence[Entry], wanted: Sequence[Entry]) -> None:
    """Hold that these are the same entries, in any order."""
    by_id = {entry.id: entry for entry in found}
    hold(len(found) == len(by_id), "an entry is there twice")
    lost = Counter(entry.id for entry in wanted) - Counter([*by_id])
    hold(not lost, f"{len(lost)} of {len(wanted)} entries are lost")
    hold(len(found) == len(wanted), f"{len(found)} entries are there and {len(wanted)} were saved")
    for entry in wanted:
        _hold_same(by_id[entry.id], entry)


def _hold_same(found: Entry, wanted: Entry) -> None:
    for name in ("content", "kind", "tags", "time"):
        one, other = getattr(found, name), getattr(wanted, name)
        sizes = f" ({len(found.content)} and {len(wanted.content)} characters)" if name == "content" else ""
        hold(one == other, f"{name} is {str(one)[:80]!r} and was {str(other)[:80]!r}{sizes}")


def _files_with(folder: Path, data: bytes) -> list[Path]:
    return [path for path in _files(folder) if data in path.read_bytes()]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


KEEPING: tuple[StoreCheck, ...] = (
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
"""These checks, each for a folder of its own."""
