"""How far the token estimate is from exact counts, and how fast it is.

    python benchmarks/tokens.py [FOLDER]

FOLDER holds one UTF-8 text a kind, `*.txt`; without it, the samples of the tests. Needs the extra `tokens`. Speed is
given in bytes per second and as a ratio to `len(text.encode())`, which every machine can repeat.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from ricordo.messages.tokens import VocabularyCounter, estimate_text, load_token_counter

SAMPLES = Path(__file__).resolve().parent.parent / "tests" / "tokens" / "samples"
VOCABULARIES = ("o200k_base", "cl100k_base", "llama3", "qwen3")
SIZE = 1_000_000


def seconds(run: Callable[[], object]) -> float:
    """Return the best time of five runs."""
    spent = []
    for _ in range(5):
        start = perf_counter()
        run()
        spent.append(perf_counter() - start)
    return min(spent)


def row(kind: str, text: str) -> str:
    """Return one line of the table."""
    estimate = estimate_text(text)
    counters = [load_token_counter(name) for name in VOCABULARIES]
    if not all(isinstance(counter, VocabularyCounter) for counter in counters):
        sys.exit("This benchmark needs the extra: pip install '.[tokens]'")
    ratios = " | ".join(f"{estimate / counter.count(text):.2f}" for counter in counters)
    long = text * (SIZE // len(text) + 1)
    ours, encoding = seconds(lambda: estimate_text(long)), seconds(lambda: len(long.encode()))
    speed = len(long.encode()) / ours / 1e6
    return f"| {kind} | {len(text)} | {estimate} | {ratios} | {speed:.0f} | {ours / encoding:.0f} |"


def main() -> None:
    """Print the table in Markdown."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES
    print(
        f"| text | characters | estimate | {' | '.join(f'/ {name}' for name in VOCABULARIES)} | MB/s | x len(encode) |"
    )
    print(f"|---|{'---:|' * (len(VOCABULARIES) + 4)}")
    for path in sorted(folder.glob("*.txt")):
        print(row(path.stem, path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
