"""Holding: what has to be so every evening, and the figures of the day."""

import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from anyio.to_thread import run_sync

from retrieval_sets import Json, Question
from ricordo import Memory
from ricordo.curation.conflicts import says_the_same
from ricordo.messages.tokens import estimate_text
from ricordo.search.contract import DocumentType, Hit, Query
from ricordo.storage import FileStore
from ricordo.storage.local import LocalFiles
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import LocatedEntry, render_prompt_lines
from ricordo.workspace.layout import MEMORY_PATH, WORKSPACE, is_profile
from ricordo.workspace.ledger import is_curated, read_all_entries
from ricordo.workspace.profile import locate_facts
from simulated.calendar import Calendar, own_session
from simulated.living import Life
from simulated.plants import Change, Plant

__all__ = ["Day", "Watch"]

LINES, TOKENS, BYTES = 200, 4_000, 25_000
LIMIT = 10
THRESHOLD = 0.8
_LEDGER: tuple[DocumentType, ...] = ("ledger", "long")


@dataclass(frozen=True, kw_only=True)
class Day:
    """The figures of one evening; `faults` are sentences, none when everything holds."""

    day: int
    lines: int
    tokens: int
    size: int
    curated: int
    remembered: int
    superseded: int
    duplicates: int
    planted: int
    recalled: int
    restated: int
    merged: int
    changed: int
    first: int
    files: int
    temporary: int
    spent: int
    threads: int
    asked: int = 0
    over_curated: float | None = None
    over_ledger: float | None = None
    faults: tuple[str, ...] = field(default=())

    def to_json(self) -> Json:
        """Return the figures as they are kept: of what does not hold no more than its kind, as texts are not ours."""
        kinds = sorted({fault.partition(":")[0] for fault in self.faults})
        return {**asdict(self), "faults": kinds}


async def _facts(files: FileStore) -> list[Entry]:
    """Return the facts of all profiles."""
    paths = [info.path for info in await files.list(WORKSPACE) if is_profile(info.path)]
    return [one.entry for path in paths for one in locate_facts((await files.read(path)).data, path)]


class Watch:
    """Looks at a life every evening; it remembers what it saw, so that what is lost is missed."""

    def __init__(self, life: Life, *, every: int = 7, questions: int = 80) -> None:
        """Put `questions` labelled ones every so many days, to curated memory and to the ledger."""
        self._life = life
        self._every = every
        self._most = questions
        self._seen: dict[str, str] = {}
        self._apart: set[tuple[str, str]] = set()
        self._known: dict[tuple[str, str], Entry] = {}
        self._alike: dict[tuple[str, str], set[tuple[str, str]]] = {}

    async def look(self, day: int) -> Day:
        """Return the figures of the evening of `day`."""
        found = await read_all_entries(LocalFiles(self._life.root))
        active = [one.entry for one in found if is_curated(one.path) and one.entry.state == "active"]
        document, files, asked_for = await run_sync(_seen, self._life.root)
        faults = [*_over(document), *self._lost(found)]
        restated = self._restated([*active, *await _facts(LocalFiles(self._life.root))], day)
        duplicates = self._duplicates(active)
        faults += [f"said twice in curated memory: {one!r} and {other!r}" for one, other in duplicates]
        plants, changes = _due(self._life.calendar, day)
        async with self._life.memory() as memory:
            missing = [plant for plant in plants if not await _recalls(memory, plant)]
            asides = [each.plant for each in self._life.calendar.asides if each.day <= day]
            unheard = [plant for plant in asides if not await _found(memory, plant)]
            second = [change for change in changes if not await _recalls(memory, change.new, limit=1)]
            asked, curated, ledger = 0, None, None
            if day % self._every == self._every - 1 or day == self._life.calendar.days - 1:
                asked, curated, ledger = await self._compared(memory, day, plants)
        faults += [f"not recalled: {plant.said}" for plant in missing]
        faults += [f"not found: {plant.said}" for plant in unheard]
        faults += [f"not recalled first: {change.new.said}" for change in second]
        faults += self._outdated(found, day)
        if self._life.left:
            faults.append(f"{self._life.left} jobs are left in the inbox")
        cap = self._life.settings.spending.daily_tokens
        spent = [_spent(rows) for rows in asked_for.values()]
        faults += [f"spent more than a day may cost: {all_:,} tokens" for all_, known in spent if cap and known > cap]
        temporary = [path for path in files if ".tmp" in path.name]
        return Day(
            day=day,
            lines=document.count(b"\n"),
            tokens=estimate_text("\n".join(render_prompt_lines(document))),
            size=len(document),
            curated=len(active),
            remembered=len(self._seen),
            superseded=len({one.entry.id for one in found if one.entry.state == "superseded"}),
            duplicates=len(duplicates),
            planted=len(plants),
            recalled=len(plants) - len(missing),
            restated=len(restated),
            merged=sum(restated),
            changed=len(changes),
            first=len(changes) - len(second),
            files=len(files),
            temporary=len(temporary),
            spent=max((tokens for tokens, _ in spent), default=0),
            threads=threading.active_count(),
            asked=asked,
            over_curated=curated,
            over_ledger=ledger,
            faults=tuple(faults),
        )

    def _lost(self, found: Iterable[LocatedEntry]) -> list[str]:
        """Return what is nowhere any more, and what was superseded by nothing."""
        there: dict[str, list[Entry]] = {}
        for one in found:
            there.setdefault(one.entry.id, []).append(one.entry)
        gone = [f"lost: {content}" for name, content in self._seen.items() if name not in there]
        loose = []
        for name, entries in there.items():
            if any(entry.state == "superseded" for entry in entries):
                successors = {value for entry in entries for key, value in entry.extra if key == "successor"}
                if not successors & there.keys():
                    loose.append(f"superseded by nothing: {entries[0].content}")
            self._seen.setdefault(name, entries[0].content)
        return gone + loose

    def _outdated(self, found: Iterable[LocatedEntry], day: int) -> list[str]:
        """Return what has changed and still stands as it was, in curated memory or a ledger."""
        active = [one.entry for one in found if one.entry.state == "active"]
        return [
            f"still stands: {each.change.old.said}"
            for each in self._life.calendar.changes
            if each.second <= day
            for entry in active
            if entry.source.session == own_session(each.first, each.change.old.said)
            and each.change.old.answer in entry.content
            and each.change.new.answer not in entry.content
        ]

    def _restated(self, active: Sequence[Entry], day: int) -> list[bool]:
        """Return for each paraphrase that was said by now whether curated memory or the profile holds it once."""
        held = [
            [
                entry
                for entry in active
                if each.what.word in entry.content
                and entry.source.session
                in {own_session(each.first, each.what.one), own_session(each.second, each.what.other)}
            ]
            for each in self._life.calendar.restated
            if each.second <= day
        ]
        return [len(entries) == 1 for entries in held]

    def _duplicates(self, active: Sequence[Entry]) -> list[tuple[str, str]]:
        """Return the pairs that say the same; two that were compared once are not compared again."""
        there = {(_speaker(entry), entry.content): entry for entry in active}
        for key in sorted(there.keys() - self._alike.keys()):
            self._alike[key] = {
                other for other, known in self._known.items() if says_the_same(there[key], known, duplicate=THRESHOLD)
            }
            self._known[key] = there[key]
        twice = len(active) - len(there)
        found = [(key[1], other[1]) for key in sorted(there) for other in sorted(self._alike[key] & there.keys())]
        return found + [("a memory", "itself")] * twice

    async def _compared(self, memory: Memory, day: int, plants: Sequence[Plant]) -> tuple[int, float, float]:
        """Return how many questions were asked, and recall@10 over curated memory and over the ledger."""
        shares: dict[str, list[float]] = {"curated": [], "ledger": []}
        held = [
            asked
            for number in range(day + 1)
            for visit in self._life.calendar.visits.get(number, ())
            for asked in self._life.calendar.questions.get(visit.session, ())
        ]
        step = max(len(held) // self._most, 1)
        places: tuple[tuple[str, tuple[DocumentType, ...]], ...] = (("curated", ("curated",)), ("ledger", _LEDGER))
        for name, sorts in places:
            for asked in held[::step]:
                hits = await memory.search(Query(text=asked.query, document_types=sorts), limit=LIMIT)
                shares[name].append(_share(hits, asked))
            for plant in plants:
                hits = await memory.search(Query(text=plant.asked, document_types=sorts), limit=LIMIT)
                shares[name].append(float(any(plant.answer in hit.entry.content for hit in hits)))
        means = [sum(values) / max(len(values), 1) for values in shares.values()]
        return len(shares["ledger"]), means[0], means[1]


def _speaker(entry: Entry) -> str:
    """Return whose memory it is: two people may say the same words of themselves."""
    return (entry.scope.user if entry.scope else None) or ""


async def _recalls(memory: Memory, plant: Plant, *, limit: int = LIMIT) -> bool:
    return any(plant.answer in hit.entry.content for hit in await memory.recall(plant.asked, limit=limit))


async def _found(memory: Memory, plant: Plant) -> bool:
    return any(plant.answer in hit.entry.content for hit in await memory.search(plant.asked, limit=LIMIT))


def _due(calendar: Calendar, day: int) -> tuple[list[Plant], list[Change]]:
    """Return what holds by the evening of `day`: facts, changed ones as they are now, and what has changed."""
    plants = [each.plant for each in calendar.facts if each.day <= day]
    plants += [
        each.change.new if each.second <= day else each.change.old for each in calendar.changes if each.first <= day
    ]
    return plants, [each.change for each in calendar.changes if each.second <= day]


def _share(hits: Sequence[Hit], asked: Question) -> float:
    """Return the share of the evidence among the messages that the hits rest on."""
    messages = {message for hit in hits for message in hit.entry.source.messages}
    return len(messages & set(asked.evidence)) / len(set(asked.evidence))


def _over(document: bytes) -> list[str]:
    lines, tokens = document.count(b"\n"), estimate_text("\n".join(render_prompt_lines(document)))
    found = [("lines", lines, LINES), ("tokens", tokens, TOKENS), ("bytes", len(document), BYTES)]
    return [f"MEMORY.md has {count:,} {name}" for name, count, most in found if count > most]


def _seen(root: Path) -> tuple[bytes, list[Path], dict[str, list[Json]]]:
    """Return MEMORY.md, every file of the root, and by day what memory asked models for."""
    memory = root / MEMORY_PATH
    asked: defaultdict[str, list[Json]] = defaultdict(list)
    for path in (root / "spending").glob("*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            asked[row["day"]].append(row)
    files = [path for path in root.rglob("*") if path.is_file()]
    return memory.read_bytes() if memory.exists() else b"", files, asked


def _spent(rows: Sequence[Json]) -> tuple[int, int]:
    """Return the tokens of requests, and those that were known before the last reply: a limit can hold for no more."""
    tokens = sum(row.get("input", 0) + row.get("output", 0) for row in rows)
    return tokens, tokens - max((row.get("output", 0) for row in rows), default=0)
