"""The page of a simulated week and year: tables of the numbers that `simulated_year.py` keeps, and a chart of them."""

import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from retrieval_sets import Json

__all__ = ["draw", "page"]

_HEAD = """# A week and a year of memory

Rendered by `python benchmarks/simulated_year.py` from the numbers in `year.json` beside it. Five people share one root
and a clock that is turned by hand; nothing asks a model. Each day they have their sessions, some with the agent
`offline`, the others taken in as they were recorded; in the evening the root is maintained. {facts} facts are planted
in the first two thirds of the time, {changes} of them change later, and {restated} are said again in other words.
{talk}

Every evening these have to hold: MEMORY.md is within 200 lines, 4,000 tokens and 25,000 bytes; no two curated memories
say the same; each planted fact is among the ten that are recalled for its question, and what is so now is the first;
what it took the place of is superseded, with a link; every memory that was ever written is there still; no job waits,
and no file is left half written.
"""
_ROWS = (
    ("MEMORY.md at its largest: lines", "lines", max),
    ("tokens", "tokens", max),
    ("bytes", "size", max),
    ("memories at the end: in the ledgers", "remembered", None),
    ("curated", "curated", None),
    ("superseded", "superseded", None),
    ("duplicates in curated memory, at most", "duplicates", max),
    ("planted facts", "planted", None),
    ("recalled, ten hits", "recalled", None),
    ("facts that changed", "changed", None),
    ("the new side recalled first", "first", None),
    ("said again in other words", "restated", None),
    ("held once in curated memory", "merged", None),
    ("tokens that models were asked for on a day, at most", "spent", max),
    ("half-written files, at most", "temporary", max),
    ("threads, at most", "threads", max),
)
_HOLDS = (
    ("MEMORY.md is within its lines, tokens and bytes", r"MEMORY\.md has .*"),
    ("no two curated memories say the same", r"said twice in curated memory"),
    ("each planted fact is among ten hits", r"not (?:recalled|found)"),
    ("what is so now is the first hit", r"not recalled first"),
    ("of what changed the old side is superseded, with a link", r"still stands|superseded by nothing"),
    ("every memory that was ever written is there", r"lost"),
    ("no job waits", r".* jobs are left in the inbox"),
    ("no day costs more than it may", r"spent more than a day may cost"),
)


def page(spans: Sequence[Json]) -> str:
    """Return the page as Markdown."""
    last = spans[-1]["evenings"][-1]
    head = _HEAD.format(
        facts=last["planted"], changes=last["changed"], restated=last["restated"], talk=_talk(spans[-1])
    )
    titles = ("", *(f"{span['days']} days, {span['sessions']} sessions" for span in spans))
    rows = [(label, *(_number(_value(span["evenings"], key, most)) for span in spans)) for label, key, most in _ROWS]
    lines = [head, f"![{_told(spans[-1])}](year.png)", "", *_table(titles, rows), ""]
    lines += ["## Evenings on which something did not hold", "", *_table(titles, [*_held(spans)]), ""]
    lines += ["## Curated memory alone", "", f"{_CURATED} {_shares(spans[-1])}", ""]
    lines += [*_table(*_compared(spans[-1])), ""]
    return "\n".join([*lines, "```sh", "python benchmarks/simulated_year.py FILE...", "```", ""])


def _talk(span: Json) -> str:
    talk = span["talk"]
    return (
        f"In the longest time {talk['conversations']} sessions are conversations of the project's own set and of the"
        f" files that were given,\n{talk['small talk']} are made-up small talk,"
        f" and {talk['planted']} hold what is planted."
    )


_CURATED = """Questions of the conversations whose answer stands in one session, a sample of those that can be answered
by then, and those of the planted facts: how much of what answers them is among ten hits."""


def draw(span: Json, folder: Path) -> bool:
    """Write the chart as PNG; False where matplotlib is not there."""
    try:
        import matplotlib as mpl
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    evenings = span["evenings"]
    days = [each["day"] + 1 for each in evenings]
    figure, axes = plt.subplots(2, 2, figsize=(9, 5.6), sharex=True)
    size, entries, twice, recall = axes.flat
    for key, most, label in (("lines", 200, "lines"), ("tokens", 4_000, "tokens"), ("size", 25_000, "bytes")):
        size.plot(days, [100 * each[key] / most for each in evenings], label=label)
    size.axhline(100, color="grey", linewidth=0.8, linestyle=":")
    size.set_title("MEMORY.md, % of what it may have", fontsize=9)
    for key, label in (("remembered", "ever written"), ("curated", "curated"), ("superseded", "superseded")):
        entries.plot(days, [each[key] for each in evenings], label=label)
    entries.set_title("memories", fontsize=9)
    twice.plot(days, [each["duplicates"] for each in evenings], label="duplicates in curated memory")
    twice.plot(days, [each["restated"] - each["merged"] for each in evenings], label="paraphrases held twice")
    twice.set_title("said twice", fontsize=9)
    twice.set_ylim(-0.2, 5)
    asked = [each for each in evenings if each["asked"]]
    planted = [each["recalled"] / each["planted"] if each["planted"] else 1.0 for each in evenings]
    recall.plot(days, planted, label="planted facts")
    for key, label in (("over_ledger", "questions, ledger"), ("over_curated", "questions, curated memory")):
        recall.plot([each["day"] + 1 for each in asked], [each[key] for each in asked], label=label)
    recall.set_ylim(0, 1.05)
    recall.set_title("recall, ten hits", fontsize=9)
    for axis in axes.flat:
        axis.legend(fontsize=7)
        axis.tick_params(labelsize=7)
    for axis in axes[1]:
        axis.set_xlabel("day", fontsize=8)
    figure.tight_layout()
    figure.savefig(folder / "year.png", dpi=110)
    return True


def _value(evenings: Sequence[Json], key: str, most: object) -> int:
    return max(each[key] for each in evenings) if most else int(evenings[-1][key])


def _held(spans: Sequence[Json]) -> list[tuple[str, ...]]:
    """Return for each thing that has to hold on how many evenings it did not, and last what is none of these."""
    rows = [(label, *(str(_evenings(span, kind)) for span in spans)) for label, kind in _HOLDS]
    known = "|".join(kind for _, kind in _HOLDS)
    others = [_evenings(span, f"(?!(?:{known})$).*") for span in spans]
    return [*rows, ("anything else", *map(str, others))] if any(others) else rows


def _evenings(span: Json, kind: str) -> int:
    return sum(any(re.fullmatch(kind, fault) for fault in each["faults"]) for each in span["evenings"])


def _shares(span: Json) -> str:
    shares = [each["over_curated"] / each["over_ledger"] for each in span["evenings"] if each["over_ledger"]]
    if not shares:
        return ""
    return (
        f"Week by week it is at least {min(shares):.2f} of what the ledgers give, in the median {median(shares):.2f}."
    )


def _compared(span: Json) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    asked = [each for each in span["evenings"] if each["asked"]]
    shown = [*asked[:: max(len(asked) // 12, 1)]]
    if asked[-1] not in shown:
        shown.append(asked[-1])
    head = ("day", "questions", "over the ledger", "over curated memory", "share")
    return head, [
        (
            str(each["day"] + 1), str(each["asked"]), f"{each['over_ledger']:.2f}", f"{each['over_curated']:.2f}",
            f"{each['over_curated'] / each['over_ledger']:.2f}" if each["over_ledger"] else "",
        )
        for each in shown
    ]  # fmt: skip


def _told(span: Json) -> str:
    evenings = span["evenings"]
    return (
        f"Lines by day: MEMORY.md has at most {_value(evenings, 'lines', max)} lines and"
        f" {_value(evenings, 'size', max):,} bytes; {evenings[-1]['recalled']} of {evenings[-1]['planted']} planted"
        " facts are recalled at the end."
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (head, ("---",) * len(head), *rows)]


def _number(value: int) -> str:
    return f"{value:,}"
