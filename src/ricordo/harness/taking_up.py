"""Taking up: the window that a session goes on with, of what was kept and what was said. Pure.

Several processes may write one transcript, and each may be killed anywhere, so what is read back can hold results far
from their calls, two results of one call, and calls that nobody answers any more. Providers refuse all of these.

Invariant: in what `repair_window` returns each call has one result at most, only calls that can still be answered have none,
and a message of results stands directly after the message that asked for them, the last one if several did. What is
left out stays in the transcript.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from ricordo.guard.rules import SECRET_MARK
from ricordo.messages import (
    Message,
    Pairing,
    Part,
    PartPosition,
    Thinking,
    ToolResult,
    get_mark,
    pair_calls,
    delivered_results,
)
from ricordo.state import AgentState, WorkState

__all__ = ["messages_from_state", "resume_window", "mark_delivered", "repair_window"]


def messages_from_state(state: AgentState) -> tuple[Message, ...]:
    """Return what a state's window holds of what was said, in its order, for a transcript that is gone; empty for none.

    Summaries, recalled memory and notices are nothing that was said. Messages keep their ids, and a parent only if it
    is among them, so that the next append chains them anew.
    """
    said = [message for message in state.window if get_mark(message) in {None, "cut"}]
    ids = {message.id for message in said}
    return tuple(message if message.parent in ids else replace(message, parent=None) for message in said)


def resume_window(window: Sequence[Message], last: str, logged: Sequence[Message]) -> tuple[Message, ...]:
    """Return the window with what the log holds after the message `last`, all of the log when that is not in it.

    What only the log holds was said in a turn that a process did not live to end. A thought in which a secret was
    replaced has no seal: it would not fit, and providers refuse such a one.
    """
    known = {message.id for message in window}
    places = [number for number, message in enumerate(logged) if message.id == last]
    rest = logged[places[-1] + 1 :] if places else logged
    found = (*window, *(message for message in rest if message.id not in known))
    return repair_window(tuple(map(_drop_broken_seals, found)))


def mark_delivered(standing: WorkState, logged: Sequence[Message]) -> WorkState:
    """Return what stands with the results that these messages show to have been told, in the order of the telling.

    A reply is recorded before the state is saved, so a process that was killed between the two told more than its
    state says.
    """
    told = dict.fromkeys(each for message in logged for each in delivered_results(message))
    new = tuple(each for each in told if each not in standing.delivered)
    return replace(standing, delivered=(*standing.delivered, *new)) if new else standing


def repair_window(window: Sequence[Message]) -> tuple[Message, ...]:
    """Return `window` as providers take it, which is as it is when nothing went wrong."""
    found = tuple(window)
    # a result that moves to its call may leave another call behind
    while (arranged := _repair_pairs(found)) != found:
        found = arranged
    return found


def _drop_broken_seals(message: Message) -> Message:
    parts = tuple(map(_drop_broken_seal, message.parts))
    return message if parts == message.parts else replace(message, parts=parts)


def _drop_broken_seal(part: Part) -> Part:
    return replace(part, signature=None) if isinstance(part, Thinking) and SECRET_MARK.search(part.text) else part


def _repair_pairs(window: Sequence[Message]) -> tuple[Message, ...]:
    pairing = pair_calls(window)
    answered: dict[PartPosition, PartPosition] = {}
    for call, result in pairing.answered:
        answered.setdefault(call, result)
    gone = _unusable_places(pairing, answered.values())
    askers = {result.message: call.message for call, result in sorted(answered.items())}
    kept: list[tuple[int, int, Message]] = []
    for at, message in enumerate(window):
        left = _remove_parts(message, at, gone)
        if left is not None:
            kept.append((askers.get(at, at) if _has_only_results(left) else at, at, left))
    return tuple(message for _, _, message in sorted(kept, key=lambda row: row[:2]))


def _unusable_places(pairing: Pairing, results: Collection[PartPosition]) -> set[PartPosition]:
    again = {result for _, result in pairing.answered}.difference(results)
    return {*pairing.orphans, *pairing.abandoned, *again}


def _remove_parts(message: Message, at: int, gone: Collection[PartPosition]) -> Message | None:
    """Return the message without these calls and results; None when nothing is left that can be sent."""
    parts = tuple(
        part for number, part in enumerate(message.parts) if PartPosition(message=at, part=number) not in gone
    )
    if len(parts) == len(message.parts):
        return message
    return None if all(isinstance(part, Thinking) for part in parts) else replace(message, parts=parts)


def _has_only_results(message: Message) -> bool:
    return bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)
