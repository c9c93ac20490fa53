"""Undoing: the window with what a compaction took away in its old place. Pure.

A compaction can be undone while the window holds what it put there, and each message that followed a part that went;
so whatever happened to other parts of the window, before or since, stays.

Invariants: the order of the conversation is kept, no message stands twice, and no summary beside what it stands for.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ricordo.compaction.summary_message import let_go, let_go_of
from ricordo.errors import UndoRefused
from ricordo.harness.journal import Journal, Kept, Noted
from ricordo.messages import Message, is_pinned, pinned

__all__ = ["Restored", "is_back", "restored"]


@dataclass(frozen=True, kw_only=True)
class Restored:
    """A window, and how many of the messages that are to come back can't be found any more."""

    window: tuple[Message, ...]
    missing: int = 0


def is_back(noted: Noted, said: Mapping[str, Message], window: Sequence[Message]) -> bool:
    """Tell whether `window` has all that went and can be found, and nothing in its place.

    So it is after a kill between a compaction and the new window, or between an undoing and its note.
    """
    ids = {message.id for message in window}
    went = [noted.before[place] for place in noted.gone]
    there = [each for each in went if each.id in ids]
    lost = sum(each.id not in said and not isinstance(each, Message) for each in went if each.id not in ids)
    return ids.isdisjoint(noted.put) and bool(there) and len(there) + lost == len(went)


def restored(noted: Noted, journal: Journal, said: Mapping[str, Message], window: Sequence[Message]) -> Restored:
    """Return `window` as it is without this compaction; `said` is what was said, by id.

    A message pinned or unpinned meanwhile stays so. Raises: UndoRefused, which says why and what can be done.
    """
    why = _hindrance(noted, journal, window)
    if why:
        raise UndoRefused(why)
    found = _put_back(noted, said, window)
    ids = {message.id for message in found}
    missing = sum(noted.before[place].id not in ids for place in noted.gone)
    if noted.gone and missing == len(noted.gone):
        raise UndoRefused(
            f"The compaction {noted.compaction.handle} can't be undone: none of the messages that it took away can be "
            f"found any more, {missing} in all."
        )
    return Restored(window=found, missing=missing)


def _hindrance(noted: Noted, journal: Journal, window: Sequence[Message]) -> str:
    """Say why a compaction can't be undone, and what to do; empty when it can."""
    made, ids = noted.compaction, {message.id for message in window}
    cant = f"The compaction {made.handle} can't be undone"
    if made.undone:
        return f"The compaction {made.handle} is undone already."
    if _stands(noted, ids):
        return _doubled(noted, journal, ids, cant)
    later = _built_on(noted, journal, ids)
    if later:
        return f"{cant} yet: {later.compaction.handle} was made of what it left, so undo that one first."
    if ids.isdisjoint((*(each.id for each in noted.before), *noted.put)):
        return f"{cant}: the window was emptied since. `expand` with the handle opens what it took away."
    why = "a later compaction took it, whose record can't be read" if journal.broken else "it changed otherwise since"
    return (
        f"{cant}: what stood in its place is not in the window any more, {why}. `expand` with the handle opens what it "
        "took away."
    )


def _stands(noted: Noted, ids: Collection[str]) -> bool:
    """Tell whether it is known where in the window everything that went has its place."""
    anchors = [anchor for anchor, _ in _parts(noted)]
    if None in anchors and not _ends(noted, ids):
        return False
    return all(each in ids for each in (*noted.put, *anchors) if each is not None)


def _ends(noted: Noted, ids: Collection[str]) -> bool:
    """Tell whether the end of what stood before is known, where nothing followed what went."""
    stayed = [each.id for place, each in enumerate(noted.before) if place not in noted.gone]
    return not stayed or any(each in ids for each in stayed)


def _parts(noted: Noted) -> Iterator[tuple[str | None, tuple[Kept, ...]]]:
    """Yield what went, in parts that stood together, each with the id of what stands where it stood: what was put
    there, or the message that followed; None where none did."""
    start = 0
    for at, place in enumerate(noted.gone, start=1):
        if noted.gone[at : at + 1] == (place + 1,):
            continue
        following = [each.id for each in noted.before[place + 1 : place + 2]]
        anchor = next(iter((*(noted.put if start == 0 else ()), *following)), None)
        yield anchor, tuple(noted.before[each] for each in noted.gone[start:at])
        start = at


def _doubled(noted: Noted, journal: Journal, ids: Collection[str], cant: str) -> str:
    """Say what would stand in the window twice, once within a summary or a notice; empty when nothing would."""
    went = {noted.before[place].id for place in noted.gone}
    others = set(ids) - went - set(noted.put)
    for other in journal.noted:
        if not others.isdisjoint(other.put) and not went.isdisjoint(_below(other.put, journal)):
            return f"{cant} yet: {other.compaction.handle} stands for what it took, so undo that one first."
    within = _below(went, journal)
    if within.isdisjoint(others | _below(others, journal)):
        return ""
    return f"{cant}: a summary or a notice that it took stands for what is in the window again."


def _below(ids: Collection[str], journal: Journal) -> set[str]:
    """Return the ids of all that those of these that are summaries or notices stand for, directly or not."""
    stood_for = {put: {each.before[place].id for place in each.gone} for each in journal.noted for put in each.put}
    found, left = set[str](), set(ids)
    while left:
        left = set[str]().union(*(stood_for.get(each, ()) for each in left)) - found
        found |= left
    return found


def _built_on(noted: Noted, journal: Journal, ids: Collection[str]) -> Noted | None:
    """Return the newest compaction that stands in the window and took what marks the place of this one, or of one that
    did."""
    known = _marks(noted)
    found: Noted | None = None
    for later in journal.noted[journal.noted.index(noted) + 1 :]:
        took = {later.before[place].id for place in later.gone}
        if not later.compaction.undone and not known.isdisjoint(took):
            known |= _marks(later)
            found = later if _stands(later, ids) else found
    return found


def _marks(noted: Noted) -> set[str]:
    return {*noted.put, *(anchor for anchor, _ in _parts(noted) if anchor is not None)}


def _put_back(noted: Noted, said: Mapping[str, Message], window: Sequence[Message]) -> tuple[Message, ...]:
    now = {message.id: message for message in window}
    gone = frozenset[str]().union(*map(let_go_of, window))
    went = {noted.before[place].id for place in noted.gone}
    before = {each.id: each for each in noted.before}
    order = {known: place for place, known in enumerate(said)}
    coming = dict(_parts(noted))
    found: list[Message] = []
    for message in window:
        part = [_back(each, said, now) for each in coming.get(message.id, ())]
        back = [each for each in part if each is not None]
        at = _place(back, found, before, order)
        found[at:at] = back
        if message.id in before and message.id not in went:
            found.append(_back(before[message.id], said, now) or message)
        elif message.id not in went and message.id not in noted.put:
            found.append(message)
    last = [each for each in (_back(kept, said, now) for kept in coming.get(None, ())) if each is not None]
    at = 1 + max((place for place, message in enumerate(found) if message.id in before), default=-1)
    found[at:at] = last
    return tuple(_without(message, gone) if message.id in before else message for message in found)


def _place(back: Sequence[Message], found: Sequence[Message], before: Collection[str], order: Mapping[str, int]) -> int:
    """Return where in `found` these go: at its end, but before what came back of an earlier compaction and was said
    later."""
    said = [order[message.id] for message in back if message.id in order]
    at = len(found)
    while said and at and found[at - 1].id not in before and order.get(found[at - 1].id, -1) > said[-1]:
        at -= 1
    return at


def _back(kept: Kept, said: Mapping[str, Message], now: Mapping[str, Message]) -> Message | None:
    current = now.get(kept.id)
    if isinstance(kept, Message):
        found = kept
    elif kept.id in said:
        found = replace(said[kept.id], parent=kept.parent)
    else:
        return current
    changed = current is not None and is_pinned(current) != is_pinned(found)
    return pinned(found, on=not is_pinned(found)) if changed else found


def _without(message: Message, gone: Collection[str]) -> Message:
    """Return a message as it is after those in `gone` were let go by the summary in its place."""
    return pinned(message, on=False) if message.id in gone and is_pinned(message) else let_go(message, gone)
