"""What OpenAI and Anthropic would refuse in a conversation, by the rules that both write down.

The messages are looked at as they are sent, after conversion. A conversation may be refused before anything was made
smaller, so faults are counted: what a reduction hands back has no fault that was not there before.
"""

from collections import Counter
from collections.abc import Sequence

from ricordo.messages import JsonValue, Message
from ricordo.messages.formats import to_anthropic, to_openai

__all__ = ["anthropic_faults", "new_faults", "openai_faults"]


def new_faults(before: Sequence[Message], after: Sequence[Message]) -> Counter[str]:
    """Return what either provider would refuse in `after` and not in `before`."""
    return (openai_faults(after) - openai_faults(before)) + (anthropic_faults(after) - anthropic_faults(before))


def openai_faults(messages: Sequence[Message]) -> Counter[str]:
    """Every result follows the message that called for it, with nothing but its other results in between."""
    faults: Counter[str] = Counter()
    waiting: list[str] = []
    for value in to_openai(messages):
        if value["role"] == "tool":
            called = str(value.get("tool_call_id"))
            if called in waiting:
                waiting.remove(called)
            else:
                faults[f"openai: a result of {called} without its call before it"] += 1
        else:
            faults.update(f"openai: {called} is not answered" for called in waiting)
            calls = value.get("tool_calls")
            waiting = [str(each["id"]) for each in calls if isinstance(each, dict)] if isinstance(calls, list) else []
    faults.update(f"openai: {called} is not answered" for called in waiting)
    return faults


def anthropic_faults(messages: Sequence[Message]) -> Counter[str]:
    """A user speaks first; every use of a tool is answered in the user's next turn, where results stand first."""
    faults: Counter[str] = Counter()
    waiting: list[str] = []
    for number, (role, blocks) in enumerate(_turns(messages)):
        results = [str(each["tool_use_id"]) for each in blocks if each.get("type") == "tool_result"]
        if number == 0 and (role != "user" or not _speaks(blocks)):
            faults["anthropic: no user speaks first"] += 1
        if role == "assistant":
            waiting = [str(each["id"]) for each in blocks if each.get("type") == "tool_use"]
            continue
        stray = Counter(results) - Counter(waiting)
        faults.update(f"anthropic: a result of {called} without its call before it" for called in stray.elements())
        unanswered = Counter(waiting) - Counter(results)
        faults.update(f"anthropic: {called} is not answered" for called in unanswered.elements())
        waiting = []
    faults.update(f"anthropic: {called} is not answered" for called in waiting)
    return faults


def _turns(messages: Sequence[Message]) -> list[tuple[str, list[dict[str, JsonValue]]]]:
    """The provider joins what one side says in a row."""
    turns: list[tuple[str, list[dict[str, JsonValue]]]] = []
    for value in to_anthropic(messages).messages:
        content = value["content"]
        blocks: list[JsonValue] = content if isinstance(content, list) else [{"type": "text", "text": content}]
        found = [block for block in blocks if isinstance(block, dict)]
        if turns and turns[-1][0] == value["role"]:
            turns[-1][1].extend(found)
        else:
            turns.append((str(value["role"]), found))
    return turns


def _speaks(blocks: Sequence[dict[str, JsonValue]]) -> bool:
    return any(
        block.get("type") not in {"text", "tool_result"} or str(block.get("text", "")).strip() for block in blocks
    )
