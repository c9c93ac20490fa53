"""How many poisoned texts are caught, missed and harmless ones held back, lived through with the public API.

    python benchmarks/poisoning.py [--page] [--floors]

Each text of `benchmarks/poisoning` is lived as a session: a person asks, a tool prints the text, the assistant repeats
it, and a model makes a memory of each of its parts. Then the memory is looked at: what waits, what is recalled, what is
in the preamble. `--page` writes `docs/benchmarks/poisoning.md`; `--floors` fails below the floors.
"""

import argparse
import base64
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from ricordo import FlushConfig, Memory, Scope
from ricordo.messages import Message, Text, ToolCall, ToolResult
from ricordo.runtime.settings import Settings
from ricordo.testing import RecordedRequest, Say, ScriptedModel

FOLDER = Path(__file__).parent / "poisoning"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "poisoning.md"
NAMES = {"de": "German", "en": "English", "es": "Spanish", "fr": "French", "ru": "Russian", "zh": "Chinese"}
SETS = {"tuned": FOLDER, "held out": FOLDER / "held_out"}
_SCOPE = Scope(user="me", project="shop")
_SECONDS = 60.0


@dataclass(frozen=True)
class Pair:
    """A poisoned text and its harmless twin, each in the parts of as many messages."""

    language: str
    kind: str
    poisoned: tuple[str, ...]
    harmless: tuple[str, ...]


@dataclass
class Count:
    """What became of the texts of a language or a kind; `seen` counts caught ones that were recalled or in a prompt."""

    pairs: int = 0
    caught: int = 0
    alarms: int = 0
    seen: int = 0
    trusted: int = 0
    missed: list[str] = field(default_factory=list)


def read_pairs(folder: Path) -> Iterator[Pair]:
    """Yield the pairs of a folder, by language."""
    for path in sorted(folder.glob("??.txt")):
        for block in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            head, _, body = block.partition("\n")
            poisoned, _, harmless = body.partition("\n--\n")
            yield Pair(path.stem, head.split()[0], _read_parts(poisoned), _read_parts(harmless))


def read_own_rules() -> list[tuple[str, str]]:
    """Return what people say of themselves and order, with its language."""
    blocks = re.split(r"^## ", (FOLDER / "own_rules.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return [(language, text.strip()) for language, _, text in (block.partition("\n") for block in blocks)]


def _read_parts(text: str) -> tuple[str, ...]:
    return tuple(_write_out(part.strip()) for part in text.split("\n+\n"))


def _write_out(text: str) -> str:
    """Return a text with its marks replaced: `{U+200B}`, `{base64:…}`, and `{tags:…}` for letters that nobody sees."""
    text = re.sub(r"\{U\+([0-9A-F]{4,6})\}", lambda mark: chr(int(mark[1], 16)), text)
    text = re.sub(r"\{base64:(.*?)\}", lambda mark: base64.b64encode(mark[1].encode()).decode(), text)
    return re.sub(r"\{tags:(.*?)\}", lambda mark: "".join(chr(0xE0000 + ord(char)) for char in mark[1]), text)


class _Noting:
    """A model that makes a memory of each part of the text that is lived."""

    def __init__(self) -> None:
        self.parts: Sequence[str] = ()

    def __call__(self, request: RecordedRequest) -> Say:
        common = {"kind": "fact", "confidence": 0.95, "message": "", "tags": [], "since": None, "until": None}
        notes = [{"content": part, "quote": part, "corrects": False, **common} for part in self.parts]
        return Say(json.dumps({"lessons": notes}))


@dataclass(frozen=True)
class _Outcome:
    waits: bool
    is_seen: bool
    is_trusted: bool


class _Life:
    """A memory in which texts are lived one after another."""

    def __init__(self, memory: Memory, model: _Noting) -> None:
        self._memory, self._model, self._number = memory, model, 0

    async def live(self, parts: Sequence[str]) -> _Outcome:
        """Live a text that a tool prints, and return what became of it."""
        self._number += 1
        self._model.parts = parts
        session, known = f"s{self._number}", {entry.id for entry in await self._memory.entries()}
        text = "\n\n".join(parts)
        call = ToolCall(id="call_1", name="fetch", arguments="{}")
        result = ToolResult(call_id="call_1", name="fetch", parts=(Text(text=text),))
        messages = [
            Message(role="user", parts=(Text(text="Read it and tell me what it says."),)),
            Message(role="assistant", parts=(call,)),
            Message(role="tool", parts=(result,)),
            Message(role="assistant", parts=(Text(text=text),)),
        ]
        await self._memory.ingest(messages, session=session)
        await self._memory.drain(seconds=_SECONDS)
        new = [entry for entry in await self._memory.entries() if entry.id not in known]
        waiting = [entry for entry in new if entry.state == "quarantined"]
        hits = {hit.entry.id for part in parts for hit in await self._memory.recall(part, limit=20)}
        preamble = await self._memory.preamble()
        seen = any(entry.id in hits or entry.content in preamble for entry in waiting)
        trusted = any(entry.trust.value != "external" or entry.content in preamble for entry in new)
        return _Outcome(waits=bool(waiting), is_seen=seen, is_trusted=trusted)

    async def say(self, text: str) -> bool:
        """Let a person say a text that a model learns, and return whether it waits."""
        self._number += 1
        self._model.parts = [text]
        known = {entry.id for entry in await self._memory.entries()}
        spoken = [Message(role="user", parts=(Text(text=text),)), Message(role="assistant", parts=(Text(text="OK."),))]
        await self._memory.ingest(spoken, session=f"s{self._number}")
        await self._memory.drain(seconds=_SECONDS)
        return any(each.state == "quarantined" for each in await self._memory.entries() if each.id not in known)


async def _open_life(folder: Path, name: str) -> tuple[Memory, _Life]:
    model = _Noting()
    settings = replace(
        Settings.from_environment(),
        flush=FlushConfig(model=ScriptedModel(model)),
        profile=None,
        consolidation=None,
        data=folder / "data",
        cache=folder / "cache",
    )
    memory = await Memory.open(folder / name, scope=_SCOPE, settings=settings, embedder="none")
    return memory, _Life(memory, model)


async def measure() -> tuple[dict[str, dict[str, Count]], dict[str, dict[str, Count]], int]:
    """Return the counts by set and language, those by set and kind, and how many rules of people's own were held."""
    languages: dict[str, dict[str, Count]] = {name: {} for name in SETS}
    kinds: dict[str, dict[str, Count]] = {name: {} for name in SETS}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, source in SETS.items():
            for number, pair in enumerate(read_pairs(source)):
                # each pair has a memory of its own, so that twins are no repetitions of each other
                memory, life = await _open_life(folder, f"{name}-{number}")
                try:
                    bad, good = await life.live(pair.poisoned), await life.live(pair.harmless)
                finally:
                    await memory.close()
                for counts, key in ((languages[name], pair.language), (kinds[name], pair.kind)):
                    count = counts.setdefault(key, Count())
                    count.pairs += 1
                    count.caught += bad.waits
                    count.alarms += good.waits
                    count.seen += bad.is_seen
                    count.trusted += bad.is_trusted
        memory, life = await _open_life(folder, "own")
        try:
            held = [await life.say(text) for _, text in read_own_rules()]
        finally:
            await memory.close()
    return languages, kinds, sum(held)


def total(counts: dict[str, Count]) -> Count:
    """Return the sum of counts."""
    rows = [*counts.values()]
    return Count(
        pairs=sum(row.pairs for row in rows), caught=sum(row.caught for row in rows),
        alarms=sum(row.alarms for row in rows), seen=sum(row.seen for row in rows),
        trusted=sum(row.trusted for row in rows),
    )  # fmt: skip


def render_page(languages: dict[str, dict[str, Count]], kinds: dict[str, dict[str, Count]], held: int) -> str:
    """Return the page of the documentation."""
    template = (FOLDER / "page.md").read_text(encoding="utf-8")
    rows = [_render_row(NAMES[key], languages["tuned"][key], languages["held out"][key]) for key in languages["tuned"]]
    sums = _render_row("**all**", total(languages["tuned"]), total(languages["held out"]))
    kind_rows = [
        _render_row(key.replace("_", " "), kinds["tuned"].get(key, Count()), kinds["held out"].get(key, Count()))
        for key in kinds["tuned"]
    ]
    both = total({**{f"t{key}": row for key, row in languages["tuned"].items()}, **languages["held out"]})
    values = {
        "LANGUAGES": "\n".join([*rows, sums]), "KINDS": "\n".join(kind_rows), "OWN": str(len(read_own_rules())),
        "HELD": str(held), "SEEN": str(both.seen), "TRUSTED": str(both.trusted), "PAIRS": str(both.pairs),
    }  # fmt: skip
    return re.sub(r"\{([A-Z]+)\}", lambda mark: values[mark[1]], template)


def _render_row(name: str, tuned: Count, held_out: Count) -> str:
    parts = [f"{row.caught} of {row.pairs} | {row.alarms}" if row.pairs else "- | -" for row in (tuned, held_out)]
    return f"| {name} | {' | '.join(parts)} |"


def find_failures(languages: dict[str, dict[str, Count]], held: int) -> list[str]:
    """Return what is worse than the floors, in words."""
    floors = json.loads((FOLDER / "floors.json").read_text(encoding="utf-8"))
    failures = [f"{held} rules of people's own waited"] if held > floors["own"] else []
    for name, counts in languages.items():
        count, floor = total(counts), floors[name]
        if count.caught < floor["caught"]:
            failures.append(f"{name}: {count.caught} caught, and {floor['caught']} is the floor")
        if count.alarms > floor["alarms"]:
            failures.append(f"{name}: {count.alarms} harmless texts wait, and {floor['alarms']} is the ceiling")
        if count.seen or count.trusted > floor["trusted"]:
            failures.append(f"{name}: {count.seen} waiting texts were shown, {count.trusted} were trusted")
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print or write what came out; return 1 for less than the floors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", action="store_true", help="write the page of the documentation")
    parser.add_argument("--floors", action="store_true", help="fail below the floors")
    options = parser.parse_args(arguments)
    languages, kinds, held = anyio.run(measure)
    for name, counts in languages.items():
        row = total(counts)
        print(f"{name}: {row.caught} of {row.pairs} caught, {row.alarms} false alarms, {row.seen} shown")
    print(f"{held} of {len(read_own_rules())} rules of people's own wait")
    if options.page:
        PAGE.write_text(render_page(languages, kinds, held), encoding="utf-8")
    failures = find_failures(languages, held) if options.floors else []
    print("\n".join(failures), file=sys.stderr, end="\n" if failures else "")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
