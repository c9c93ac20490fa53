"""Edits of the window: undo a compaction, remove a message, or replace a message's text. Pure.

A compaction can be undone while the window holds its replacements and each message that followed the removed ones.

Invariants: the order of the conversation is kept. No message occurs twice, and no summary occurs together with the
messages that it replaces. A call and its result are removed together.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ricordo.agent.compaction_journal import CompactionRecord, Journal, JournalMessage
from ricordo.context.contract import Reduction, Window
from ricordo.context.plan import changed_reduction
from ricordo.context.summary_message import release_pins, released_pins
from ricordo.errors import MessageNotFound, UndoRefused
from ricordo.messages import Message, Part, Text, count_fingerprints, is_pinned, split_groups, with_ids, with_pin

__all__ = ["RestoredWindow", "edit_message", "is_restored", "remove_message", "restore_window"]


@dataclass(frozen=True, kw_only=True)
class RestoredWindow:
    """A restored window, and the number of messages that could not be restored because they no longer exist."""

    window: tuple[Message, ...]
    missing: int = 0


def is_restored(noted: CompactionRecord, said: Mapping[str, Message], window: Sequence[Message]) -> bool:
    """Return whether `window` has all removed messages that still exist, and none of their replacements.

    This happens after a kill between a compaction and the new window, or between an undo and its record.
    """
    ids = {message.id for message in window}
    went = [noted.before[place] for place in noted.removed_places]
    there = [each for each in went if each.id in ids]
    lost = sum(each.id not in said and not isinstance(each, Message) for each in went if each.id not in ids)
    return ids.isdisjoint(noted.inserted_ids) and bool(there) and len(there) + lost == len(went)


def restore_window(
    noted: CompactionRecord, journal: Journal, said: Mapping[str, Message], window: Sequence[Message]
) -> RestoredWindow:
    """Return `window` without this compaction; `said` are the original messages by id.

    A message that was pinned or unpinned meanwhile stays so. Raises: UndoRefused with the reason and advice.
    """
    why = _undo_obstacle(noted, journal, window)
    if why:
        raise UndoRefused(why)
    found = _insert_removed(noted, said, window)
    ids = {message.id for message in found}
    missing = sum(noted.before[place].id not in ids for place in noted.removed_places)
    if noted.removed_places and missing == len(noted.removed_places):
        raise UndoRefused(
            f"The compaction {noted.compaction.handle} can't be undone: none of the messages that it took away can be "
            f"found any more, {missing} in all."
        )
    return RestoredWindow(window=found, missing=missing)


def _undo_obstacle(noted: CompactionRecord, journal: Journal, window: Sequence[Message]) -> str:
    """Return why a compaction can't be undone, with advice; empty if it can."""
    made, ids = noted.compaction, {message.id for message in window}
    cant = f"The compaction {made.handle} can't be undone"
    if made.undone:
        return f"The compaction {made.handle} is undone already."
    if _has_anchors(noted, ids):
        return _duplication_obstacle(noted, journal, ids, cant)
    later = _find_dependent(noted, journal, ids)
    if later:
        return f"{cant} yet: {later.compaction.handle} was made of what it left, so undo that one first."
    if ids.isdisjoint((*(each.id for each in noted.before), *noted.inserted_ids)):
        return f"{cant}: the window was emptied since. `expand` with the handle opens what it took away."
    why = (
        "a later compaction took it, whose record can't be read"
        if journal.broken_lines
        else "it changed otherwise since"
    )
    return (
        f"{cant}: what stood in its place is not in the window any more, {why}. `expand` with the handle opens what it "
        "took away."
    )


def _has_anchors(noted: CompactionRecord, ids: Collection[str]) -> bool:
    """Return whether the place of every removed message in the window is known."""
    anchors = [anchor for anchor, _ in _removed_runs(noted)]
    if None in anchors and not _has_known_end(noted, ids):
        return False
    return all(each in ids for each in (*noted.inserted_ids, *anchors) if each is not None)


def _has_known_end(noted: CompactionRecord, ids: Collection[str]) -> bool:
    """Return whether the end of the earlier messages is known, for removed messages with none after them."""
    stayed = [each.id for place, each in enumerate(noted.before) if place not in noted.removed_places]
    return not stayed or any(each in ids for each in stayed)


def _removed_runs(noted: CompactionRecord) -> Iterator[tuple[str | None, tuple[JournalMessage, ...]]]:
    """Yield the removed messages in contiguous runs, each with the id that marks its place: that of the replacement or
    of the following message; None if there is neither.
    """
    start = 0
    for at, place in enumerate(noted.removed_places, start=1):
        if noted.removed_places[at : at + 1] == (place + 1,):
            continue
        following = [each.id for each in noted.before[place + 1 : place + 2]]
        anchor = next(iter((*(noted.inserted_ids if start == 0 else ()), *following)), None)
        yield anchor, tuple(noted.before[each] for each in noted.removed_places[start:at])
        start = at


def _duplication_obstacle(noted: CompactionRecord, journal: Journal, ids: Collection[str], cant: str) -> str:
    """Return which messages would occur twice, once within a summary or a notice; empty if none would."""
    went = {noted.before[place].id for place in noted.removed_places}
    others = set(ids) - went - set(noted.inserted_ids)
    for other in journal.records:
        if not others.isdisjoint(other.inserted_ids) and not went.isdisjoint(_covered_ids(other.inserted_ids, journal)):
            return f"{cant} yet: {other.compaction.handle} stands for what it took, so undo that one first."
    within = _covered_ids(went, journal)
    if within.isdisjoint(others | _covered_ids(others, journal)):
        return ""
    return f"{cant}: a summary or a notice that it took stands for what is in the window again."


def _covered_ids(ids: Collection[str], journal: Journal) -> set[str]:
    """Return the ids of all messages that these summaries or notices replace, directly or indirectly."""
    stood_for = {
        put: {each.before[place].id for place in each.removed_places}
        for each in journal.records
        for put in each.inserted_ids
    }
    found, left = set[str](), set(ids)
    while left:
        left = set[str]().union(*(stood_for.get(each, ()) for each in left)) - found
        found |= left
    return found


def _find_dependent(noted: CompactionRecord, journal: Journal, ids: Collection[str]) -> CompactionRecord | None:
    """Return the newest compaction in effect that removed the place markers of this one, or of one that did so."""
    known = _anchor_ids(noted)
    found: CompactionRecord | None = None
    for later in journal.records[journal.records.index(noted) + 1 :]:
        took = {later.before[place].id for place in later.removed_places}
        if not later.compaction.undone and not known.isdisjoint(took):
            known |= _anchor_ids(later)
            found = later if _has_anchors(later, ids) else found
    return found


def _anchor_ids(noted: CompactionRecord) -> set[str]:
    return {*noted.inserted_ids, *(anchor for anchor, _ in _removed_runs(noted) if anchor is not None)}


def _insert_removed(
    noted: CompactionRecord, said: Mapping[str, Message], window: Sequence[Message]
) -> tuple[Message, ...]:
    now = {message.id: message for message in window}
    gone = frozenset[str]().union(*map(released_pins, window))
    went = {noted.before[place].id for place in noted.removed_places}
    before = {each.id: each for each in noted.before}
    order = {known: place for place, known in enumerate(said)}
    coming = dict(_removed_runs(noted))
    found: list[Message] = []
    for message in window:
        part = [_restore_message(each, said, now) for each in coming.get(message.id, ())]
        back = [each for each in part if each is not None]
        at = _insertion_index(back, found, before, order)
        found[at:at] = back
        if message.id in before and message.id not in went:
            found.append(_restore_message(before[message.id], said, now) or message)
        elif message.id not in went and message.id not in noted.inserted_ids:
            found.append(message)
    last = [each for each in (_restore_message(kept, said, now) for kept in coming.get(None, ())) if each is not None]
    at = 1 + max((place for place, message in enumerate(found) if message.id in before), default=-1)
    found[at:at] = last
    return tuple(_release_pins(message, gone) if message.id in before else message for message in found)


def _insertion_index(
    back: Sequence[Message], found: Sequence[Message], before: Collection[str], order: Mapping[str, int]
) -> int:
    """Return the index in `found` for the restored messages: at the end, but before later messages that an earlier
    compaction brought back.
    """
    said = [order[message.id] for message in back if message.id in order]
    at = len(found)
    while said and at and found[at - 1].id not in before and order.get(found[at - 1].id, -1) > said[-1]:
        at -= 1
    return at


def _restore_message(kept: JournalMessage, said: Mapping[str, Message], now: Mapping[str, Message]) -> Message | None:
    current = now.get(kept.id)
    if isinstance(kept, Message):
        found = kept
    elif kept.id in said:
        found = replace(said[kept.id], parent=kept.parent)
    else:
        return current
    changed = current is not None and is_pinned(current) != is_pinned(found)
    return with_pin(found, on=not is_pinned(found)) if changed else found


def _release_pins(message: Message, gone: Collection[str]) -> Message:
    """Return a message with the pins in `gone` released, in a pinned message or a summary."""
    return with_pin(message, on=False) if message.id in gone and is_pinned(message) else release_pins(message, gone)


def remove_message(window: Window, message_id: str) -> Reduction:
    """Return `window` without a message; calls are removed with their results, and results with their call.

    Raises: MessageNotFound.
    """
    messages = window.messages
    at = _find_position(messages, message_id)
    going = {at}
    if _is_paired(messages[at]):
        group = next(each for each in split_groups(messages) if each.start <= at < each.stop)
        going = {place for place in range(group.start, group.stop) if _is_paired(messages[place])}
    left = [message for place, message in enumerate(messages) if place not in going]
    gone = [messages[place] for place in sorted(going)]
    return changed_reduction("remove", window, left, "a person removed it", dropped=gone)


def edit_message(window: Window, message_id: str, text: str) -> Reduction:
    """Return `window` with the text of a message replaced; its calls and results stay.

    The new message has an id of its own. Raises: MessageNotFound.
    """
    messages = window.messages
    at = _find_position(messages, message_id)
    before = messages[at]
    worded = replace(before, id="", parts=_replace_text(before.parts, text))
    (after,) = with_ids([worded], session=window.session, known=count_fingerprints(messages))
    left = (*messages[:at], after, *messages[at + 1 :])
    return changed_reduction("edit", window, left, "a person worded it otherwise", dropped=[before])


def _find_position(messages: Sequence[Message], message_id: str) -> int:
    found = next((at for at, message in enumerate(messages) if message_id and message.id == message_id), None)
    if found is None:
        raise MessageNotFound(f"No message of the window has the id {message_id}.")
    return found


def _is_paired(message: Message) -> bool:
    return bool(message.tool_calls or message.tool_results)


def _replace_text(parts: Sequence[Part], text: str) -> tuple[Part, ...]:
    """Return the parts with `text` in the first text part; other text parts become empty, so that positions stay."""
    first = next((at for at, part in enumerate(parts) if isinstance(part, Text)), None)
    if first is None:
        return (*parts, Text(text=text))
    return tuple(
        Text(text=text if at == first else "") if isinstance(part, Text) else part for at, part in enumerate(parts)
    )
