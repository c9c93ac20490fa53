"""Taking up: the window that a session goes on with, of what was kept and what was said. Pure.

Several processes may write one transcript, and each may be killed anywhere, so what is read back can hold results far
from their calls, two results of one call, and calls that nobody answers any more. Providers refuse all of these.

Invariant: in what `valid` returns each call has one result at most, only calls that can still be answered have none,
and a message of results stands directly after the message that asked for them, the last one if several did. What is
left out stays in the transcript.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from ricordo.guard.rules import MARK
from ricordo.messages import Message, Pairing, Part, Place, Thinking, ToolResult, mark_of, pair, told_by
from ricordo.state import AgentState, Standing

__all__ = ["rebuilt", "taken_up", "told_in", "valid"]


def rebuilt(state: AgentState) -> tuple[Message, ...]:
    """Return what a state's window holds of what was said, in its order, for a transcript that is gone; empty for none.

    Summaries, recalled memory and notices are nothing that was said. Messages keep their ids, and a parent only if it
    is among them, so that the next append chains them anew.
    """
    said = [message for message in state.window if mark_of(message) in {None, "cut"}]
    ids = {message.id for message in said}
    return tuple(message if message.parent in ids else replace(message, parent=None) for message in said)


def taken_up(window: Sequence[Message], last: str, logged: Sequence[Message]) -> tuple[Message, ...]:
    """Return the window with what the log holds after the message `last`, all of the log when that is not in it.

    What only the log holds was said in a turn that a process did not live to end. A thought in which a secret was
    replaced has no seal: it would not fit, and providers refuse such a one.
    """
    known = {message.id for message in window}
    places = [number for number, message in enumerate(logged) if message.id == last]
    rest = logged[places[-1] + 1 :] if places else logged
    found = (*window, *(message for message in rest if message.id not in known))
    return valid(tuple(map(_unsealed, found)))


def told_in(standing: Standing, logged: Sequence[Message]) -> Standing:
    """Return what stands with the results that these messages show to have been told, in the order of the telling.

    A reply is recorded before the state is saved, so a process that was killed between the two told more than its
    state says.
    """
    told = dict.fromkeys(each for message in logged for each in told_by(message))
    new = tuple(each for each in told if each not in standing.delivered)
    return replace(standing, delivered=(*standing.delivered, *new)) if new else standing


def valid(window: Sequence[Message]) -> tuple[Message, ...]:
    """Return `window` as providers take it, which is as it is when nothing went wrong."""
    found = tuple(window)
    # a result that moves to its call may leave another call behind
    while (arranged := _arranged(found)) != found:
        found = arranged
    return found


def _unsealed(message: Message) -> Message:
    parts = tuple(map(_without_broken_seal, message.parts))
    return message if parts == message.parts else replace(message, parts=parts)


def _without_broken_seal(part: Part) -> Part:
    return replace(part, signature=None) if isinstance(part, Thinking) and MARK.search(part.text) else part


def _arranged(window: Sequence[Message]) -> tuple[Message, ...]:
    pairing = pair(window)
    answered: dict[Place, Place] = {}
    for call, result in pairing.answered:
        answered.setdefault(call, result)
    gone = _gone(pairing, answered.values())
    askers = {result.message: call.message for call, result in sorted(answered.items())}
    kept: list[tuple[int, int, Message]] = []
    for at, message in enumerate(window):
        left = _without(message, at, gone)
        if left is not None:
            kept.append((askers.get(at, at) if _only_results(left) else at, at, left))
    return tuple(message for _, _, message in sorted(kept, key=lambda row: row[:2]))


def _gone(pairing: Pairing, results: Collection[Place]) -> set[Place]:
    again = {result for _, result in pairing.answered}.difference(results)
    return {*pairing.orphans, *pairing.abandoned, *again}


def _without(message: Message, at: int, gone: Collection[Place]) -> Message | None:
    """Return the message without these calls and results; None when nothing is left that can be sent."""
    parts = tuple(part for number, part in enumerate(message.parts) if Place(message=at, part=number) not in gone)
    if len(parts) == len(message.parts):
        return message
    return None if all(isinstance(part, Thinking) for part in parts) else replace(message, parts=parts)


def _only_results(message: Message) -> bool:
    return bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)
