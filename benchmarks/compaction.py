"""What a summary without a model costs and saves: `python benchmarks/compaction.py PATH [PATH ...]`.

PATH is a history in any form that Ricordo imports. Each session is one window. For every limit of the digest the table
gives the tokens before and after and how many times as long as an estimate of the same messages it took. Then the
whole history is one conversation that grows message by message through `Compact` with the default configuration; what
counts there is how often it fires and the largest window that is left.
"""

import argparse
import sys
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import anyio

from ricordo.context import Compact, CompactionConfig, DigestSummarizer, Window, build_digest
from ricordo.context.plan import count_message_tokens
from ricordo.importers import read_history
from ricordo.messages import Message, with_ids
from ricordo.messages.tokens import estimate_text

LIMITS = (500, 1_000, 2_000)
ROUNDS = 3


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", type=Path, nargs="+")
    for path in parser.parse_args().paths:
        sessions = read_sessions(path)
        sys.stdout.write(f"{path.name}: {len(sessions)} sessions, {sum(map(len, sessions))} messages\n")
        for limit in LIMITS:
            sys.stdout.write(f"  digest of at most {limit:,} tokens: {digested(sessions, limit)}\n")
        sys.stdout.write(f"  grown message by message: {anyio.run(grown, sessions)}\n")


def read_sessions(path: Path) -> list[list[Message]]:
    """The messages of each session, with ids."""
    rows = read_history(path, on_problem=lambda *_: None)
    return [
        with_ids([row.message for row in group], session=str(session))
        for session, group in groupby(rows, key=lambda row: row.session)
    ]


def digested(sessions: list[list[Message]], limit: int) -> str:
    """Tokens before and after, and the time as a ratio to the estimate's."""
    found = [build_digest(session, limit_tokens=limit) for session in sessions]
    before = sum(sum(count_message_tokens(session, 1.0)) for session in sessions)
    after = sum(map(estimate_text, found))
    spent = best(lambda: [build_digest(session, limit_tokens=limit) for session in sessions])
    estimated = best(lambda: [count_message_tokens(session, 1.0) for session in sessions])
    return f"{before:,} to {after:,} tokens ({after / before:.1%}), {spent / estimated:.1f} times an estimate"


async def grown(sessions: list[list[Message]]) -> str:
    """How one long conversation goes through the default configuration."""
    compact = Compact(CompactionConfig(), DigestSummarizer())
    window: tuple[Message, ...] = ()
    fired = largest = 0
    for message in (message for session in sessions for message in session):
        found = await compact.reduce(Window(messages=(*window, message), agent="main", session="s1"))
        window = found.messages
        fired += found.report.status == "done"
        largest = max(largest, found.report.tokens_after)
    return (
        f"{fired} summaries, largest window left {largest:,} tokens, last one "
        f"{sum(count_message_tokens(window, 1.0)):,}"
    )


def best(work: Callable[[], object]) -> float:
    """The shortest of a few runs, in seconds."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


if __name__ == "__main__":
    main()
