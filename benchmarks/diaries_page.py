"""The page of the diaries: a table of the numbers that `diaries.py` keeps, and what they mean."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["render_page", "write_page"]

Json = dict[str, Any]

_HEAD = """# Months of conversations

Rendered by `python benchmarks/diaries.py --write` from the numbers in `diaries.json` beside it. Nothing asks a model.

A diary is invented: {sessions} of a person or a team with an assistant, over months, with all that real talk has: half
sentences, several subjects in one message, answers that mean nothing without their question, changes told in passing,
irony, hearsay, what a tool returned. Labels say what a careful reader would keep of it, what has taken the place of
what, what is noise, which instructions were planted, and what may be asked later. Ricordo lives a diary session by
session through its public API, with the clock of the diary; then its curated memory is read (`MEMORY.md`, the topics
and the profile), and the questions are put to `recall`, `search` and `answer`.

{table}

- **Labelled items** are those that hold after the last session. One is kept if a line of curated memory says it, with
  its subject and its value. The rows below it are the same by class.
- **Changes held**: the new value is in curated memory, and no line gives the old one as if it still held.
- **Lines with a label**: of all lines of curated memory, those that say a labelled item and no noise. **Lines said
  twice**: those that an earlier line says word for word, as a fact of the profile that is in memory too.
- **hit@1, hit@10**: the first hit answers the question, or one of ten does; a question of two items needs both among
  ten. **Stale first**: a value that was replaced, or was not yet there, comes before the one asked for.
- **Ask right**: the answer, read below its question, says what was asked. **Ask silent**: nothing in the diary answers
  the question, and neither does Ricordo.

{diaries}

## What the numbers cannot tell

A line is judged by key strings: whether it names the subject and the value. That finds losses and repetitions. It does
not tell whether a line reads well, and a right line in words that nobody foresaw counts as missing. The keys are
checked before each run: they match their own message and their own statement, and no statement of another item. Three
diaries by one author are a small sample: a difference of two or three items means nothing.

`python benchmarks/diaries.py --floors` fails if a number is worse than its floor in `benchmarks/diaries/floors.json`;
`make soak` does the same. The floors are slightly below what holds.

## What such a memory looks like

The beginning of `MEMORY.md` after the diary `{excerpt_of}`, without the ids:

```markdown
{excerpt}
```
"""
_DIARIES = {
    "clinic": "a backend developer and one coding agent, four months, in English: errors, tool results, fixes, rules",
    "climbing-zh": "a team of four that makes an app for climbing gyms, five months, in Chinese with some English",
    "household": "a family with a small business, six months, in English and German with some French",
}


def write_page(page: Path, reports: Mapping[str, Json]) -> None:
    """Keep the numbers of the reports beside the page, and render the page of them."""
    names = [name for name in _DIARIES if name in reports] + [name for name in reports if name not in _DIARIES]
    kept = {name: {key: value for key, value in reports[name].items() if key != "details"} for name in names}
    page.with_suffix(".json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    page.write_text(render_page(kept), "utf-8")


def render_page(reports: Mapping[str, Json]) -> str:
    """Return the page as Markdown."""
    first = next(iter(reports))
    sessions = [report["sessions"] for report in reports.values()]
    return _HEAD.format(
        sessions=f"{min(sessions)} to {max(sessions)} sessions",
        table="\n".join(_table(reports)),
        diaries="\n".join(_describe(reports)),
        excerpt_of=first,
        excerpt="\n".join(reports[first]["excerpt"]),
    )


def _table(reports: Mapping[str, Json]) -> Iterator[str]:
    titles = [f"`{name}`{', held out' if report['held_out'] else ''}" for name, report in reports.items()]
    yield _row(["", *titles])
    yield _row(["---", *("---:" for _ in titles)])
    for measure in next(iter(reports.values()))["measures"]:
        cells = [report["measures"][measure] for report in reports.values()]
        yield _row([measure, *(_share(part, whole) for part, whole in cells)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}: {part / whole:.2f}" if whole else "–"


def _describe(reports: Mapping[str, Json]) -> Iterator[str]:
    for name, report in reports.items():
        held_out = " Nobody tunes on it, ever." if report["held_out"] else ""
        yield f"- `{name}`: {_DIARIES.get(name, 'a diary')}; {report['messages']} messages.{held_out}"
