"""Edits of the window: undo a compaction, remove a message, or replace a message's text. Pure.

A compaction can be undone while the window holds its replacements and each message that followed the removed ones.

Invariants: the order of the conversation is kept. No message occurs twice, and no summary occurs together with the
messages that it replaces. A call and its result are removed together.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ricordo.agent.compaction_journal import CompactionRecord, Journal, JournalMessage
from ricordo.context.contract import Reduction, Window
from ricordo.context.plan import changed_reduction
from ricordo.context.summary_message import release_pins, released_pins
from ricordo.errors import MessageNotFound, UndoRefused
from ricordo.lazy import dataclass
from ricordo.messages import Message, Part, Text, count_fingerprints, is_pinned, split_groups, with_ids, with_pin

__all__ = ["RestoredWindow", "edit_message", "is_restored", "remove_message", "restore_window"]


@dataclass(frozen=True, kw_only=True)
class RestoredWindow:
    """A restored window, and the number of messages that could not be restored because they no longer exist."""

    window: tuple[Message, ...]
    missing: int = 0


def is_restored(record: CompactionRecord, originals: Mapping[str, Message], window: Sequence[Message]) -> bool:
    """Return whether `window` has all removed messages that still exist, and none of their replacements.

    This happens after a kill between a compaction and the new window, or between an undo and its record.
    """
    ids = {message.id for message in window}
    removed = [record.before[place] for place in record.removed_places]
    present = [each for each in removed if each.id in ids]
    missing = sum(each.id not in originals and not isinstance(each, Message) for each in removed if each.id not in ids)
    return ids.isdisjoint(record.inserted_ids) and bool(present) and len(present) + missing == len(removed)


def restore_window(
    record: CompactionRecord, journal: Journal, originals: Mapping[str, Message], window: Sequence[Message]
) -> RestoredWindow:
    """Return `window` without this compaction; `originals` are the original messages by id.

    A message that was pinned or unpinned meanwhile stays so. Raises: UndoRefused with the reason and advice.
    """
    obstacle = _undo_obstacle(record, journal, window)
    if obstacle:
        raise UndoRefused(obstacle)
    restored = _insert_removed(record, originals, window)
    ids = {message.id for message in restored}
    missing = sum(record.before[place].id not in ids for place in record.removed_places)
    if record.removed_places and missing == len(record.removed_places):
        raise UndoRefused(
            f"The compaction {record.compaction.handle} can't be undone: none of the messages that it took away can be "
            f"found any more, {missing} in all."
        )
    return RestoredWindow(window=restored, missing=missing)


def _undo_obstacle(record: CompactionRecord, journal: Journal, window: Sequence[Message]) -> str:
    """Return why a compaction can't be undone, with advice; empty if it can."""
    compaction, ids = record.compaction, {message.id for message in window}
    prefix = f"The compaction {compaction.handle} can't be undone"
    if compaction.is_undone:
        return f"The compaction {compaction.handle} is undone already."
    if _has_anchors(record, ids):
        return _duplication_obstacle(record, journal, ids, prefix)
    later = _find_dependent(record, journal, ids)
    if later:
        return f"{prefix} yet: {later.compaction.handle} was made of what it left, so undo that one first."
    if ids.isdisjoint((*(each.id for each in record.before), *record.inserted_ids)):
        return f"{prefix}: the window was emptied since. `expand` with the handle opens what it took away."
    reason = (
        "a later compaction took it, whose record can't be read"
        if journal.broken_lines
        else "it changed otherwise since"
    )
    return (
        f"{prefix}: what stood in its place is not in the window any more, {reason}. `expand` with the handle opens "
        "what it took away."
    )


def _has_anchors(record: CompactionRecord, ids: Collection[str]) -> bool:
    """Return whether the place of every removed message in the window is known."""
    anchors = [anchor for anchor, _ in _removed_runs(record)]
    if None in anchors and not _has_known_end(record, ids):
        return False
    return all(each in ids for each in (*record.inserted_ids, *anchors) if each is not None)


def _has_known_end(record: CompactionRecord, ids: Collection[str]) -> bool:
    """Return whether the end of the earlier messages is known, for removed messages with none after them."""
    remaining = [each.id for place, each in enumerate(record.before) if place not in record.removed_places]
    return not remaining or any(each in ids for each in remaining)


def _removed_runs(record: CompactionRecord) -> Iterator[tuple[str | None, tuple[JournalMessage, ...]]]:
    """Yield the removed messages in contiguous runs, each with the id that marks its place: that of the replacement or
    of the following message; None if there is neither.
    """
    start = 0
    for stop, place in enumerate(record.removed_places, start=1):
        if record.removed_places[stop : stop + 1] == (place + 1,):
            continue
        following = [each.id for each in record.before[place + 1 : place + 2]]
        anchor = next(iter((*(record.inserted_ids if start == 0 else ()), *following)), None)
        yield anchor, tuple(record.before[each] for each in record.removed_places[start:stop])
        start = stop


def _duplication_obstacle(record: CompactionRecord, journal: Journal, ids: Collection[str], prefix: str) -> str:
    """Return which messages would occur twice, once within a summary or a notice; empty if none would."""
    removed_ids = {record.before[place].id for place in record.removed_places}
    other_ids = set(ids) - removed_ids - set(record.inserted_ids)
    for other in journal.records:
        if not other_ids.isdisjoint(other.inserted_ids) and not removed_ids.isdisjoint(
            _covered_ids(other.inserted_ids, journal)
        ):
            return f"{prefix} yet: {other.compaction.handle} stands for what it took, so undo that one first."
    covered = _covered_ids(removed_ids, journal)
    if covered.isdisjoint(other_ids | _covered_ids(other_ids, journal)):
        return ""
    return f"{prefix}: a summary or a notice that it took stands for what is in the window again."


def _covered_ids(ids: Collection[str], journal: Journal) -> set[str]:
    """Return the ids of all messages that these summaries or notices replace, directly or indirectly."""
    replaced_ids = {
        inserted_id: {each.before[place].id for place in each.removed_places}
        for each in journal.records
        for inserted_id in each.inserted_ids
    }
    covered, pending = set[str](), set(ids)
    while pending:
        pending = set[str]().union(*(replaced_ids.get(each, ()) for each in pending)) - covered
        covered |= pending
    return covered


def _find_dependent(record: CompactionRecord, journal: Journal, ids: Collection[str]) -> CompactionRecord | None:
    """Return the newest compaction in effect that removed the place markers of this one, or of one that did so."""
    anchor_ids = _anchor_ids(record)
    dependent: CompactionRecord | None = None
    for later in journal.records[journal.records.index(record) + 1 :]:
        removed_ids = {later.before[place].id for place in later.removed_places}
        if not later.compaction.is_undone and not anchor_ids.isdisjoint(removed_ids):
            anchor_ids |= _anchor_ids(later)
            dependent = later if _has_anchors(later, ids) else dependent
    return dependent


def _anchor_ids(record: CompactionRecord) -> set[str]:
    return {*record.inserted_ids, *(anchor for anchor, _ in _removed_runs(record) if anchor is not None)}


def _insert_removed(
    record: CompactionRecord, originals: Mapping[str, Message], window: Sequence[Message]
) -> tuple[Message, ...]:
    current_messages = {message.id: message for message in window}
    released = frozenset[str]().union(*map(released_pins, window))
    removed_ids = {record.before[place].id for place in record.removed_places}
    earlier = {each.id: each for each in record.before}
    order = {message_id: place for place, message_id in enumerate(originals)}
    runs = dict(_removed_runs(record))
    restored: list[Message] = []
    for message in window:
        run = [_restore_message(each, originals, current_messages) for each in runs.get(message.id, ())]
        returning = [each for each in run if each is not None]
        index = _insertion_index(returning, restored, earlier, order)
        restored[index:index] = returning
        if message.id in earlier and message.id not in removed_ids:
            restored.append(_restore_message(earlier[message.id], originals, current_messages) or message)
        elif message.id not in removed_ids and message.id not in record.inserted_ids:
            restored.append(message)
    trailing = [
        each
        for each in (_restore_message(original, originals, current_messages) for original in runs.get(None, ()))
        if each is not None
    ]
    index = 1 + max((place for place, message in enumerate(restored) if message.id in earlier), default=-1)
    restored[index:index] = trailing
    return tuple(_release_pins(message, released) if message.id in earlier else message for message in restored)


def _insertion_index(
    returning: Sequence[Message], restored: Sequence[Message], earlier: Collection[str], order: Mapping[str, int]
) -> int:
    """Return the index in `restored` for the restored messages: at the end, but before later messages that an earlier
    compaction brought back.
    """
    positions = [order[message.id] for message in returning if message.id in order]
    index = len(restored)
    while (
        positions
        and index
        and restored[index - 1].id not in earlier
        and order.get(restored[index - 1].id, -1) > positions[-1]
    ):
        index -= 1
    return index


def _restore_message(
    original: JournalMessage, originals: Mapping[str, Message], current_messages: Mapping[str, Message]
) -> Message | None:
    current = current_messages.get(original.id)
    if isinstance(original, Message):
        restored = original
    elif original.id in originals:
        restored = replace(originals[original.id], parent=original.parent)
    else:
        return current
    changed = current is not None and is_pinned(current) != is_pinned(restored)
    return with_pin(restored, on=not is_pinned(restored)) if changed else restored


def _release_pins(message: Message, released: Collection[str]) -> Message:
    """Return a message with the pins in `released` released, in a pinned message or a summary."""
    return (
        with_pin(message, on=False)
        if message.id in released and is_pinned(message)
        else release_pins(message, released)
    )


def remove_message(window: Window, message_id: str) -> Reduction:
    """Return `window` without a message; calls are removed with their results, and results with their call.

    Raises: MessageNotFound.
    """
    messages = window.messages
    index = _find_position(messages, message_id)
    removed_indexes = {index}
    if _is_paired(messages[index]):
        group = next(each for each in split_groups(messages) if each.start <= index < each.stop)
        removed_indexes = {place for place in range(group.start, group.stop) if _is_paired(messages[place])}
    remaining = [message for place, message in enumerate(messages) if place not in removed_indexes]
    dropped = [messages[place] for place in sorted(removed_indexes)]
    return changed_reduction("remove", window, remaining, "a person removed it", dropped=dropped)


def edit_message(window: Window, message_id: str, text: str) -> Reduction:
    """Return `window` with the text of a message replaced; its calls and results stay.

    The new message has an id of its own. Raises: MessageNotFound.
    """
    messages = window.messages
    index = _find_position(messages, message_id)
    before = messages[index]
    edited = replace(before, id="", parts=_replace_text(before.parts, text))
    (after,) = with_ids([edited], session=window.session, counts=count_fingerprints(messages))
    messages_after = (*messages[:index], after, *messages[index + 1 :])
    return changed_reduction("edit", window, messages_after, "a person worded it otherwise", dropped=[before])


def _find_position(messages: Sequence[Message], message_id: str) -> int:
    index = next((at for at, message in enumerate(messages) if message_id and message.id == message_id), None)
    if index is None:
        raise MessageNotFound(f"No message of the window has the id {message_id}.")
    return index


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
