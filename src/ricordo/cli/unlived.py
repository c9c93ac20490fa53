"""What an earlier run that was cut off left to be lived through: compares a record with the transcript of its session.

What was said counts, in its order: the transcript gathers the results of one reply in one message. Secrets are replaced
in it, so a text that holds such a mark is taken for the recorded one.

Invariant: of what was said in the record, each message is either in the transcript or in what is left. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ricordo.cli.recorded import RecordedTurn, strip_tool_results
from ricordo.messages import Message, ToolResult, get_mark

__all__ = ["RemainingTurns", "find_remaining_turns"]

_SECRET_MARK = "[secret:"


@dataclass(frozen=True, kw_only=True)
class RemainingTurns:
    """The messages that a turn lacks which was cut off, and the turns after it."""

    messages: tuple[Message, ...] = ()
    turns: tuple[RecordedTurn, ...] = ()


def find_remaining_turns(turns: Sequence[RecordedTurn], logged: Sequence[Message]) -> RemainingTurns:
    """Return what `logged` lacks of a record; nothing when it is whole, or holds another conversation."""
    there = [message for message in logged if get_mark(message) is None and _is_said(message)]
    said = [message for turn in turns for message in turn.messages if _is_said(message)]
    if len(there) > len(said) or not all(map(_is_same, there, said)):
        return RemainingTurns()
    left = len(there)
    for number, turn in enumerate(turns):
        count = sum(map(_is_said, turn.messages))
        if left == 0 and count:
            return RemainingTurns(turns=tuple(turns[number:]))
        if left <= count:
            rest = _remaining_messages(turn, left, logged)
            later = tuple(turns[number + 1 :])
            return RemainingTurns(messages=rest, turns=later) if rest or later else RemainingTurns()
        left -= count
    return RemainingTurns()


def _is_said(message: Message) -> bool:
    return message.role == "assistant" or (message.role == "user" and bool(strip_tool_results(message).parts))


def _is_same(there: Message, said: Message) -> bool:
    return there.role == said.role and (there.text == said.text or _SECRET_MARK in there.text)


def _remaining_messages(turn: RecordedTurn, done: int, logged: Sequence[Message]) -> tuple[Message, ...]:
    """Return the messages after the `done`th that was said, but for results that are there."""
    last = max((number for number, message in enumerate(logged) if _is_said(message)), default=-1)
    answered = {result.call_id for message in logged[last:] for result in message.tool_results}
    rest: list[Message] = []
    for message in turn.messages:
        if done > 0:
            done -= _is_said(message)
            continue
        parts = tuple(p for p in message.parts if not isinstance(p, ToolResult) or p.call_id not in answered)
        if parts or not message.parts:
            rest.append(replace(message, parts=parts))
    return tuple(rest)
