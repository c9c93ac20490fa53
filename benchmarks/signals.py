"""How well signals are told from phrases: `python benchmarks/signals.py`.

The labelled messages stand in `tests/language/signal_messages/`: one half the phrases were tuned on, the other was
written first and only its totals were looked at meanwhile. Precision is the share of signals found that are right,
recall the share of those expected that are found, for each class and each language. `--show` lists what went wrong in
the half that was tuned on."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ricordo.language.acts import SIGNALS, default_detector

MESSAGES = Path(__file__).parent.parent / "tests" / "language" / "signal_messages"
HALVES = ("developed_on", "held_out")


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """A message with its language and the signals that a careful reader sees in it."""

    language: str
    signals: frozenset[str]
    text: str


@dataclass(frozen=True, kw_only=True)
class Score:
    """How many signals were found rightly, found wrongly and missed."""

    right: int = 0
    wrong: int = 0
    missed: int = 0

    @property
    def precision(self) -> float:
        """The share of found signals that are right; 1 when none was found."""
        return self.right / (self.right + self.wrong) if self.right + self.wrong else 1.0

    @property
    def recall(self) -> float:
        """The share of expected signals that were found; 1 when none was expected."""
        return self.right / (self.right + self.missed) if self.right + self.missed else 1.0

    @property
    def row(self) -> str:
        """Precision, recall and the number of signals expected."""
        return f"P {self.precision:.3f}  R {self.recall:.3f}  ({self.right + self.missed})"


@cache
def labelled(half: str) -> tuple[Labelled, ...]:
    """Return the messages of one half, in the order of the file."""
    lines = (MESSAGES / f"{half}.txt").read_text("utf8").splitlines()
    rows = [line.split(" | ", 2) for line in lines if line and not line.startswith("#")]
    return tuple(
        Labelled(language=language, signals=frozenset(signals.split(",")) - {"-"}, text=text)
        for language, signals, text in rows
    )


@cache
def found(text: str) -> frozenset[str]:
    """Return the signals that the bundled phrases give."""
    return frozenset[str](default_detector().detect(text))


def score(messages: Iterable[Labelled], classes: Iterable[str] = SIGNALS) -> Score:
    """Return how the signals of `classes` were found in `messages`."""
    counts: Counter[str] = Counter()
    asked = frozenset(classes)
    for message in messages:
        given, expected = found(message.text) & asked, message.signals & asked
        counts += Counter(right=len(given & expected), wrong=len(given - expected), missed=len(expected - given))
    return Score(right=counts["right"], wrong=counts["wrong"], missed=counts["missed"])


def main() -> None:
    """Print the table: each class and each language, both halves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="list what went wrong in the half that was tuned on")
    show = parser.parse_args().show
    for half in HALVES:
        messages = labelled(half)
        bare = sum(not message.signals for message in messages)
        sys.stdout.write(f"{half}: {len(messages)} messages, {bare} without a signal\n")
        for signal in SIGNALS:
            sys.stdout.write(f"  {signal:14}{score(messages, [signal]).row}\n")
        for language in dict.fromkeys(message.language for message in messages):
            own = [message for message in messages if message.language == language]
            sys.stdout.write(f"  {language:14}{score(own).row}\n")
        sys.stdout.write(f"  {'all':14}{score(messages).row}\n")
    if show:
        for message in labelled(HALVES[0]):
            if found(message.text) != message.signals:
                told, wanted = sorted(found(message.text)), sorted(message.signals)
                sys.stdout.write(f"{message.language} {told} for {wanted}: {message.text}\n")


if __name__ == "__main__":
    main()
