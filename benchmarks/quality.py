"""How good recall is, as a page: every set, every category and script, and what each weight of the ranking is worth.

    python benchmarks/quality.py [DATA ...] [--ablate] [--afresh] [--out FOLDER]

The project's own set is always measured; DATA are files of LoCoMo or LongMemEval or folders of BEAM, from where the
caller has them. Numbers, and no text of the data, are kept in `retrieval.json` in FOLDER (docs/benchmarks): a run
replaces what it measured and leaves the rest. The page beside it, and the charts, are made from that file; the charts
need matplotlib (the dependency group `bench`), and stay as they are without it. A set that was measured with this very
code is not measured again, except with `--afresh`. With `--ablate` each weight of the ranking is set to 0 in turn.
Where the extra `embed` is installed, all of it is measured with the static embedder too.
"""

import argparse
import hashlib
import json
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import anyio

from quality_page import ABLATED, WITH_MEANING, draw, page
from retrieval import LEFT_OUT, PlainFts5, Retriever, evaluated, means, run, scores
from retrieval_adapter import Recalled, StandingClock, as_items, factory, ids_of, take_in
from retrieval_sets import NEVER, OWN_SET, Haystack, Json, Question, load, load_own, parsed_time
from ricordo import Memory, Scope
from ricordo.models.embedders import load_embedder
from ricordo.search.config import RecallConfig
from ricordo.search.contract import Match, Query, SearchSource
from ricordo.search.index import WorkspaceIndex
from ricordo.search.recall import search
from ricordo.storage.local import LocalFiles

__all__ = ["main"]

_HERE = Path(__file__).resolve().parent
_CACHE = _HERE.parent / "build" / "quality"
_DEPTH = 50
_NOT_WEIGHTS = {"floor", "duplicate", "said_coverage", "said_margin"}
_RETRIEVERS: Mapping[str, Callable[[], Retriever]] = {
    "SQLite FTS5": PlainFts5, "Ricordo": factory, "Ricordo, transcripts only": lambda: factory(over="transcripts"),
    WITH_MEANING: lambda: factory(embedder="static"),
}  # fmt: skip
_MOST_SHOWN_ALONE = 10
_HAS_STATIC = find_spec("wordllama") is not None


class _Kept(WorkspaceIndex):
    """An index that answers a question which it has answered from what it gave then."""

    async def search(self, query: Query | str, limit: int = 10) -> list[Match]:
        kept: dict[tuple[object, int], list[Match]] = self.__dict__.setdefault("_answers", {})
        key = (str(query), limit)
        if key not in kept:
            kept[key] = await super().search(query, limit)
        return list(kept[key])


def main() -> None:
    """Measure what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="*")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--afresh", action="store_true")
    parser.add_argument("--out", type=Path, default=_HERE.parent / "docs" / "benchmarks")
    given = parser.parse_args()
    kept = given.out / "retrieval.json"
    found: dict[str, Json] = json.loads(kept.read_text("utf-8")) if kept.exists() else {"sets": {}}
    for name, path in {"own": OWN_SET, **{path.stem: path for path in given.data}}.items():
        haystacks = load_own() if path == OWN_SET else load([path])
        key = _key(path)
        found["sets"][name] = _cached(key, lambda: _set(haystacks), afresh=given.afresh)  # noqa: B023
        found["sets"][name]["command"] = _command(name, path)
        if given.ablate:
            for embedder in ("none", "static") if _HAS_STATIC else ("none",):
                ablated = partial(anyio.run, _ablation, haystacks, embedder)
                made = _cached(f"{key}-ablation-{embedder}", ablated, afresh=given.afresh)
                found.setdefault("ablation", {}).setdefault(embedder, {})[name] = made
    given.out.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (given.out / "retrieval.md").write_text(page(found), "utf-8")
    if not draw(found, given.out):
        print("The charts stay as they are: matplotlib is not there.", file=sys.stderr)
    json.dump({name: made["retrievers"] for name, made in found["sets"].items()}, sys.stdout)
    print()


def _set(haystacks: Sequence[Haystack]) -> dict[str, Json]:
    made: dict[str, Json] = {
        "haystacks": len(haystacks), "sessions": sum(len({t.session for t in h.items}) for h in haystacks),
        "turns": sum(len(haystack.items) for haystack in haystacks), "retrievers": {},
    }  # fmt: skip
    for name, make in _RETRIEVERS.items():
        if name == WITH_MEANING and not _HAS_STATIC:
            continue
        rows = run(haystacks, make, depth=_DEPTH)
        made["retrievers"][name] = evaluated(rows)
        if 1 < len(haystacks) <= _MOST_SHOWN_ALONE:
            halves = {half.id: [row.turns for row in rows if row.haystack == half.id] for half in haystacks}
            made["retrievers"][name]["split"] = {
                half: {"questions": len(held), **means(held)} for half, held in halves.items()
            }
    never = [(haystack, asked) for haystack in haystacks for asked in haystack.questions if asked.category == NEVER]
    if never:
        made["never"] = {"questions": len(never), "answered": sum(_answered(haystacks, never))}
    return made


def _answered(haystacks: Iterable[Haystack], never: Sequence[tuple[Haystack, Question]]) -> list[bool]:
    answers: list[bool] = []
    for haystack in haystacks:
        memory: Recalled = factory()
        memory.index(as_items(haystack))
        answers += [memory.answer(asked.query, asked.now).found for held, asked in never if held is haystack]
    return answers


async def _ablation(haystacks: Sequence[Haystack], embedder: str) -> dict[str, dict[str, float]]:
    """Return the scores with every weight, and with one of them at 0, for those that change any score."""
    usual = RecallConfig()
    named = [field.name for field in fields(usual) if isinstance(getattr(usual, field.name), float)]
    variants = {name: _without(usual, name) for name in named if name not in _NOT_WEIGHTS}
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in ("all", *variants)}
    for haystack in haystacks:
        with tempfile.TemporaryDirectory() as folder:
            await _ablated(Path(folder), haystack, {"all": usual, **variants}, rows, embedder)
    shown = {name: means(found) for name, found in rows.items()}
    every = {name: {key: found[key] for key in ABLATED} for name, found in shown.items()}
    return {name: found for name, found in every.items() if name == "all" or found != every["all"]}


def _without(usual: RecallConfig, name: str) -> RecallConfig:
    changed: dict[str, Json] = {name: 0.0}
    return replace(usual, **changed)


async def _ablated(
    folder: Path, haystack: Haystack, variants: Mapping[str, RecallConfig],
    rows: Mapping[str, list[dict[str, float]]], embedder: str,
) -> None:  # fmt: skip
    clock = StandingClock()
    clock.time = max(filter(None, (parsed_time(turn.time) for turn in haystack.items)), default=clock.time)
    async with Memory.open(folder, scope=Scope(user="me", project="benchmark"), clock=clock) as memory:
        await take_in(memory, as_items(haystack))
    held = load_embedder(embedder) if embedder != "none" else None
    index = await _Kept.open(folder / "ablation.db", LocalFiles(folder), embedder=held)
    await index.refresh()
    for asked in haystack.questions:
        turns = {turn.id for turn in haystack.items} & set(asked.evidence)
        if turns and asked.category not in LEFT_OUT:
            for name, config in variants.items():
                now = parsed_time(asked.now) or clock.time
                hits = await search([SearchSource(label="project", index=index)], asked.query, now=now, config=config)
                rows[name].append(scores(ids_of(hits), turns))
    await index.close()


def _cached(key: str, measure: Callable[[], dict[str, Json]], *, afresh: bool) -> dict[str, Json]:
    path = _CACHE / f"{key}.json"
    if path.exists() and not afresh:
        return dict(json.loads(path.read_text("utf-8")))
    made = measure()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made), "utf-8")
    return made


def _key(data: Path) -> str:
    """Return a digest of the data and of all code that has a part in the numbers."""
    sources = [*(_HERE.parent / "src").rglob("*.py"), *_HERE.glob("retrieval*.py"), Path(__file__)]
    held = data.rglob("*") if data.is_dir() else [data]
    digest = hashlib.sha256()
    for path in (*sorted(sources), *sorted(path for path in held if path.is_file())):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:24]


def _command(name: str, path: Path) -> str:
    return "python benchmarks/quality.py" + ("" if name == "own" else f" {shlex.quote(path.name)}")


if __name__ == "__main__":
    main()
