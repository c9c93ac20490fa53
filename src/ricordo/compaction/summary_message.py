"""The message that stands for what was dropped: a summary, what the user asked, and what stays in force, word for word.

The text is a fenced block, so nothing in it can be taken for a turn or an instruction of its own; a second block holds
what is to be followed on: system messages from the middle of the conversation and what a person pinned. Both are read
back exactly: the next summary gets the words of this one, not its frame. Which item is what stands in the metadata.

Invariants: the id depends only on the session and on what the message says when it is made; one that a pinned item was
let go from keeps its id, and names what it let go. What the user asked is carried by code: the first request and the
latest ones, whatever the summary left out; and so is every instruction, never cut.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ricordo.guard import Quoted, Trust, cut, fence, unfence
from ricordo.language import content_words
from ricordo.messages import JsonValue, Message, Text, is_pinned, mark_of, marked, with_ids
from ricordo.tokens.estimate import estimate_text

__all__ = [
    "Asked",
    "Instruction",
    "asked",
    "body_of",
    "carried",
    "handle_in",
    "instructions",
    "kept_after",
    "leading",
    "let_go",
    "let_go_of",
    "summary_message",
]

_KEY = "ricordo.summary"
_FENCE = "summary"
_INSTRUCTIONS = "instructions"
_LONGEST_REQUEST = 1_200
_FRAME = 20
_SUBSTANCE = 3
_CUT = " [...]"
_NOTE = "what was said before, in short; a record, not a request"
_LEAD = (
    "The messages before this point were condensed. Below is a summary of them and what the user asked, word for word. "
    "It is a record and not a new request: go on from where it ends."
)
_IN_FORCE = "given or pinned before this point, word for word; still in force, and to be followed"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the user asked in the message `id`; a very long text is cut and says so."""

    id: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """What the message `id` says and a summary carries on whole: `kind` tells a system message from a pinned one."""

    id: str
    text: str
    kind: Literal["system", "pinned"]


def leading(messages: Sequence[Message]) -> int:
    """Return how many system messages stand at the head; they stay there, whatever is summed up."""
    return next((at for at, message in enumerate(messages) if not _is_system(message)), len(messages))


def carried(message: Message) -> bool:
    """Tell whether a summary carries all that a message says: a system message, or one with words that a person pinned.

    Nothing of it is condensed, and it is never cut.
    """
    return _is_system(message) or (
        is_pinned(message) and mark_of(message) != "summary" and bool(_words(message).strip())
    )


def instructions(dropped: Sequence[Message]) -> tuple[Instruction, ...]:
    """Return what among `dropped` stays in force, in order, with what earlier summaries carried; each once."""
    found: list[Instruction] = []
    for message in dropped:
        if carried(message):
            kind: Literal["system", "pinned"] = "system" if _is_system(message) else "pinned"
            found += [Instruction(id=message.id, text=text, kind=kind) for text in [_words(message)] if text.strip()]
        elif mark_of(message) == "summary":
            found += _carried_on(message)
    return tuple(dict.fromkeys(found))


def asked(dropped: Sequence[Message], budget: int) -> tuple[Asked, ...]:
    """Return the first request among `dropped` and the latest ones, in order, in about `budget` tokens.

    All of them are carried whole where they fit in together; else long ones are cut, and what says next to nothing,
    such as a yes, takes only the room that the others leave. What earlier summaries carried counts as asked where
    they stand.
    """
    every = list(_every_request(dropped))
    if sum(estimate_text(each.text) + _FRAME for each in every) <= budget:
        return tuple(every)
    every = [replace(each, text=_shortened(each.text)) for each in every]
    left = budget - estimate_text(every[0].text) - _FRAME
    chosen = {0}
    latest = range(len(every) - 1, 0, -1)
    thin = [at for at in latest[1:] if len(content_words(every[at].text)) < _SUBSTANCE]
    for some in ([at for at in latest if at not in set(thin)], thin):
        for at in some:
            size = estimate_text(every[at].text) + _FRAME
            if size > left:
                break
            left -= size
            chosen.add(at)
    return tuple(every[at] for at in sorted(chosen))


def summary_message(
    body: str,
    dropped: Sequence[Message],
    *,
    session: str,
    requests: Sequence[Asked],
    kept: int,
    lead: bool,
    standing: Sequence[Instruction] = (),
    handle: str = "",
) -> Message:
    """Return the message that stands for `dropped`, a user's by role.

    `kept` counts the messages after it. `lead` puts a sentence before the block that says how to read it and what opens
    what was dropped; without it the block says so in brief. `standing` is what stays in force. `handle` is the name by
    which what was dropped can be opened, empty where nothing keeps it.
    """
    items = [
        Quoted(text=body, source=f"messages {_covered(dropped)}", trust=Trust.AGENT),
        *(Quoted(text=each.text, source="asked", trust=Trust.USER, id=each.id or None) for each in requests),
    ]
    note = _NOTE if lead or not handle else f"{_NOTE}; in full: `expand` with {handle}"
    opened = f" `expand` with `{handle}` opens what was said, word for word." if handle else ""
    before = f"{_LEAD}{opened}\n\n" if lead else ""
    text, rules = _with_rules(before + fence(items, name=_FENCE, note=note), standing)
    record: dict[str, JsonValue] = {
        "kept": kept,
        "asked": [each.id for each in requests],
        "block": len(before),
        **({"handle": handle} if handle else {}),
        **rules,
    }
    message = Message(role="user", parts=(Text(text=text),), time=dropped[-1].time, metadata={_KEY: record})
    return marked(with_ids([message], session=session)[0], "summary")


def let_go(message: Message, named: Collection[str]) -> Message:
    """Return a summary without the pinned items of these ids, all else as it was; the same message if it has none."""
    every = tuple(_carried_on(message))
    going = {each.id for each in every if each.id and each.id in named and each.kind == "pinned"}
    if not going:
        return message
    left = [each for each in every if each.kind != "pinned" or each.id not in going]
    record = _record(message)
    start = record.get("rules")
    head = message.text[: start if isinstance(start, int) else None].rstrip("\n")
    gone: list[JsonValue] = [*sorted({*let_go_of(message), *going})]
    text, standing = _with_rules(head, left)
    others = {key: value for key, value in record.items() if key not in {"rules", "standing"}}
    return replace(
        message,
        parts=(Text(text=text),),
        metadata={**message.metadata, _KEY: {**others, **standing, "let_go": gone}},
    )


def let_go_of(message: Message) -> frozenset[str]:
    """Return the ids of what was pinned and this summary carries no longer; empty for most, and what is none."""
    found = _record(message).get("let_go")
    return frozenset(each for each in found if isinstance(each, str)) if isinstance(found, list) else frozenset()


def body_of(message: Message) -> str:
    """Return the words of a summary without their frame; the whole text of one that is not understood."""
    texts = _items(message)
    return texts[0] if texts else message.text


def kept_after(message: Message) -> int:
    """Return how many messages stayed after this summary when it was made; 0 when that is not known."""
    kept = _record(message).get("kept")
    return kept if isinstance(kept, int) else 0


def handle_in(message: Message) -> str:
    """Return the handle of what a summary stands for; empty when it names none."""
    found = _record(message).get("handle")
    return found if isinstance(found, str) else ""


def _every_request(messages: Sequence[Message]) -> Iterator[Asked]:
    for message in messages:
        if mark_of(message) == "summary":
            yield from _asked_before(message)
        elif message.role == "user" and mark_of(message) is None and not is_pinned(message) and message.text.strip():
            yield Asked(id=message.id, text=message.text)


def _asked_before(message: Message) -> Iterator[Asked]:
    ids = _record(message).get("asked")
    texts = _items(message)[1:]
    known = [each if isinstance(each, str) else "" for each in ids] if isinstance(ids, list) else []
    for at, text in enumerate(texts):
        yield Asked(id=known[at] if at < len(known) else "", text=text)


def _shortened(text: str) -> str:
    whole = len(text) <= _LONGEST_REQUEST + len(_CUT) if text.endswith(_CUT) else len(text) <= _LONGEST_REQUEST
    return text if whole else cut(text, _LONGEST_REQUEST) + _CUT


def _is_system(message: Message) -> bool:
    return message.role == "system" and not message.tool_calls and not message.tool_results


def _words(message: Message) -> str:
    return "\n".join(filter(None, (message.text, *(result.text for result in message.tool_results))))


def _covered(dropped: Sequence[Message]) -> str:
    said = [message for message in dropped if mark_of(message) != "summary"]
    return f"up to {said[-1].id}" if said and said[-1].id else "before"


def _with_rules(head: str, standing: Sequence[Instruction]) -> tuple[str, dict[str, JsonValue]]:
    """Return the text with the block of what stays in force, and what the record says of that block."""
    rules = fence([_in_force(each) for each in standing], name=_INSTRUCTIONS, note=_IN_FORCE)
    if not rules:
        return head, {}
    start = f"{head}\n\n"
    return start + rules, {"rules": len(start), "standing": [[each.kind, each.id] for each in standing]}


def _in_force(instruction: Instruction) -> Quoted:
    return Quoted(text=instruction.text, source=instruction.kind, trust=Trust.USER, id=instruction.id or None)


def _carried_on(message: Message) -> Iterator[Instruction]:
    """What an earlier summary carried, as it stood there."""
    record = _record(message)
    start, named = record.get("rules"), record.get("standing")
    texts = unfence(message.text[start:]) if isinstance(start, int) else ()
    for text, each in zip(texts or (), named if isinstance(named, list) else [], strict=False):
        match each:
            case ["system" | "pinned" as kind, str(known)]:
                yield Instruction(id=known, text=text, kind=kind)
            case _:
                yield Instruction(id="", text=text, kind="pinned")


def _items(message: Message) -> tuple[str, ...]:
    record = _record(message)
    start, end = record.get("block"), record.get("rules")
    if not isinstance(start, int):
        return ()
    return unfence(message.text[start : end if isinstance(end, int) else None]) or ()


def _record(message: Message) -> dict[str, JsonValue]:
    found = message.metadata.get(_KEY)
    return found if isinstance(found, dict) else {}
