"""How well recall finds the turns that hold an answer, next to plain SQLite FTS5 on the same turns.

    python benchmarks/retrieval.py SCORER DATA [--only NAME]

SCORER is a script with `load(paths)` and `evaluate(haystacks, make)`, which knows the data, asks a retriever for turns
(`index(items)`, `search(query, k, now)`) and measures R@k, any@k, all@k, NDCG and MRR. Every conversation is written as
transcripts, one for each session, and searched through `ricordo.recall`. Nothing of the data is kept.
"""

import argparse
import importlib.util
import json
import re
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Protocol

from anyio.from_thread import BlockingPortal, start_blocking_portal

from ricordo.files.in_memory import InMemoryFiles
from ricordo.index.keyword import KeywordIndex
from ricordo.language import content_words
from ricordo.messages.codec import encode
from ricordo.messages.types import Message, Text
from ricordo.recall.hits import Source
from ricordo.recall.recall import search

__all__ = ["Recalled", "main", "parsed_time", "transcripts"]

Item = Mapping[str, str]


class Retriever(Protocol):
    """What the scorer asks."""

    def index(self, items: Sequence[Item]) -> None:
        """Take the turns of one haystack, in order of time."""
        ...

    def search(self, query: str, k: int, now: str | None = None) -> list[str]:
        """Return at most `k` ids of turns, best first."""
        ...


class Recalled:
    """Ricordo: the turns as transcripts, found by `recall.search`."""

    def __init__(self, portal: BlockingPortal, folder: Path) -> None:
        """Keep the index in `folder`."""
        self._portal = portal
        self._folder = Path(tempfile.mkdtemp(dir=folder))

    def index(self, items: Sequence[Item]) -> None:
        """Write the sessions and take them in."""
        self._portal.call(self._index, items)

    def search(self, query: str, k: int, now: str | None = None) -> list[str]:
        """Return the ids of the turns, best first."""
        return self._portal.call(self._search, query, k, now)

    async def _index(self, items: Sequence[Item]) -> None:
        files = InMemoryFiles()
        for path, data in transcripts(items):
            await files.append(path, data)
        self._index_of = await KeywordIndex.open(self._folder / "memory_index.db", files)
        await self._index_of.refresh()

    async def _search(self, query: str, k: int, now: str | None) -> list[str]:
        moment = parsed_time(now or "") or datetime(2024, 1, 1, tzinfo=UTC)
        hits = await search([Source(label="project", index=self._index_of)], query, limit=k, now=moment)
        return [hit.entry.source.messages[0] for hit in hits if hit.entry.source.messages]


class PlainFts5:
    """The yardstick: FTS5 with its own tokenizer and stemmer over the bare turns, the words joined by OR."""

    def index(self, items: Sequence[Item]) -> None:
        """Fill a table in memory."""
        self._ids = [item["id"] for item in items]
        self._table = sqlite3.connect(":memory:", check_same_thread=False)
        self._table.execute("CREATE VIRTUAL TABLE turn USING fts5 (body, tokenize = 'porter unicode61')")
        rows = [(item["text"],) for item in items]
        self._table.executemany("INSERT INTO turn (body) VALUES (?)", rows)

    def search(self, query: str, k: int, now: str | None = None) -> list[str]:
        """Return the ids of the turns in the order of bm25."""
        del now
        wanted = " OR ".join(f'"{word}"' for word in dict.fromkeys(content_words(query, "en")) if '"' not in word)
        if not wanted:
            return []
        sql = "SELECT rowid FROM turn WHERE turn MATCH ? ORDER BY bm25(turn) LIMIT ?"
        return [self._ids[row[0] - 1] for row in self._table.execute(sql, (wanted, k))]


def transcripts(items: Iterable[Item]) -> Iterable[tuple[str, bytes]]:
    """Yield each turn as the line of a transcript with the path it goes to."""
    for item in items:
        session = re.sub(r"[^A-Za-z0-9]", "-", item["session"])
        message = Message(
            role="user" if item["speaker"] != "assistant" else "assistant",
            name=item["speaker"],
            id=item["id"],
            time=parsed_time(item["time"]),
            parts=(Text(text=item["text"]),),
        )
        yield f"workspace/agents/main/sessions/{session}.log.jsonl", encode(message)


def parsed_time(text: str) -> datetime | None:
    """Read a time such as `1:56 pm on 8 May, 2023`; None for another form."""
    for form in ("%I:%M %p on %d %B, %Y", "%B-%d-%Y", "%Y/%m/%d (%a) %H:%M"):
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None


def _scorer(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("scorer", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} can't be loaded.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Measure and print one line of JSON for each retriever."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scorer", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--only", choices=("ricordo", "fts5"))
    arguments = parser.parse_args()
    scorer = _scorer(arguments.scorer)
    haystacks = scorer.load([arguments.data])
    with start_blocking_portal() as portal, tempfile.TemporaryDirectory() as folder:
        made: dict[str, Callable[[], Retriever]] = {
            "fts5": PlainFts5,
            "ricordo": lambda: Recalled(portal, Path(folder)),
        }
        for name, make in made.items():
            if arguments.only in {None, name}:
                report, _ = scorer.evaluate(haystacks, make)
                json.dump({"retriever": name, **report}, sys.stdout)
                print()


if __name__ == "__main__":
    main()
