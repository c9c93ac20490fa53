"""The turns of a conversation: what a person says, which tools are called, what they answer, and the reply.

Everything hangs on a seed, so each way to keep the window small meets the same conversation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from long_talk.facts import Fact
from long_talk.project import Project

__all__ = ["Call", "Turn", "remarks", "talk"]

_WIDE_EVERY = 40
_WIDE = (100_000, 200_000)
_LOG = (500, 12_000)
_WIDE_SHARE = 0.25
_REPLIES = (
    "Done. The change is in, and the checks pass.",
    "I had a look. Nothing else depends on it, so it can stay as it is.",
    "That works now. I left the rest of the file alone.",
    "Understood. I will keep it in mind for the next step.",
    "It is as you say. The log shows the same picture.",
)
_REMARKS = (
    "Please have a look at the {noun} once more, it was slow this morning.",
    "I talked to the people of the {noun} desk, and they are happy with it so far.",
    "Can you clean up what is left of the {noun} code?",
    "The weather is fine, and the {noun} report can wait until Friday.",
    "My sister asked again about the {noun}, she wants to see it work.",
)
_NOUNS = ("order", "parcel", "invoice", "stock", "label", "route", "refund", "price")


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a tool, and what it answers."""

    tool: str
    arguments: Mapping[str, str]
    output: str


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What a person says, the calls it takes, in order, and the reply."""

    text: str
    calls: tuple[Call, ...]
    reply: str


def talk(said: Sequence[str], facts: Sequence[Fact], *, seed: int) -> list[Turn]:
    """Return a turn for each text of `said`, with tool traffic and the facts spread evenly over them.

    Every fortieth turn has a result of 100 to 200 KB; a third of the turns has no call, the others have one to four.
    """
    random = Random(seed)
    project = Project(random)
    turns = [
        Turn(text=text, calls=_calls(project, random, number), reply=random.choice(_REPLIES))
        for number, text in enumerate(said)
    ]
    for number, fact in enumerate(facts):
        at = number * len(turns) // len(facts)
        turns[at] = _with(turns[at], fact, project, random)
    return turns


def remarks(count: int, *, seed: int) -> list[str]:
    """Return what a person might say, where no conversation is given."""
    random = Random(seed)
    return [random.choice(_REMARKS).format(noun=random.choice(_NOUNS)) for _ in range(count)]


def _calls(project: Project, random: Random, number: int) -> tuple[Call, ...]:
    if number % _WIDE_EVERY == _WIDE_EVERY // 2:
        return (_shell(project, random, random.randint(*_WIDE)),)
    if random.random() < 1 / 3:
        return ()
    return tuple(_call(project, random) for _ in range(random.randint(1, 4)))


def _call(project: Project, random: Random) -> Call:
    kind = random.choices(("read", "search", "shell", "write"), weights=(5, 2, 3, 1))[0]
    if kind == "read":
        path, text = project.read()
        return Call(tool="read_file", arguments={"path": path}, output=text)
    if kind == "search":
        word, text = project.found()
        return Call(tool="grep_files", arguments={"pattern": word}, output=text)
    if kind == "write":
        path, text = project.write()
        return Call(tool="write_file", arguments={"path": path, "content": text}, output=f"Wrote {path}.")
    return _shell(project, random, random.randint(*_LOG))


def _shell(project: Project, random: Random, characters: int) -> Call:
    command = f"make test ARGS='-k {random.choice(_NOUNS)}'"
    return Call(tool="bash", arguments={"command": command}, output=project.log(characters))


def _with(turn: Turn, fact: Fact, project: Project, random: Random) -> Turn:
    """Return the turn with a fact in it; one that a tool tells stands anywhere in a log, one of four in a wide one."""
    if fact.where == "user":
        return replace(turn, text=f"{turn.text} {fact.said}")
    if fact.where == "assistant":
        return replace(turn, reply=f"{turn.reply} {fact.said}")
    wide = random.random() < _WIDE_SHARE
    call = _shell(project, random, random.randint(*(_WIDE if wide else _LOG)))
    lines = call.output.split("\n")
    lines.insert(random.randint(0, len(lines)), fact.said)
    return replace(turn, calls=(*turn.calls, replace(call, output="\n".join(lines))))
