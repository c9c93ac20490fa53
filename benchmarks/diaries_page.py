"""The page of the diaries: a table of the numbers that `diaries.py` keeps, and what they mean."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["render_page", "write_page"]

Json = dict[str, Any]

_HEAD = """# Months of conversations

Rendered by `python benchmarks/diaries.py --write` from the numbers in `diaries.json` beside it. The first table
is without a model.

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

## With a model

The same with a model that knows the labels (`python benchmarks/diaries.py --model`). It is asked through the protocol
that every model speaks, sees nothing but the requests of extraction and consolidation, and answers in words of its own
what the labels say of the messages in them: what to note, what takes the place of what, what is done. What is lost
here, the best model would lose, too: a note that is refused, one that is not promoted, a change that is not believed.

{model_table}

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
_MODEL = "with a model"
_DIARIES = {
    "clinic": "a backend developer and one coding agent, four months, in English: errors, tool results, fixes, rules",
    "climbing-zh": "a team of four that makes an app for climbing gyms, five months, in Chinese with some English",
    "household": "a family with a small business, six months, in English and German with some French",
}


def write_page(page: Path, reports: Mapping[str, Json], *, with_model: bool = False) -> None:
    """Keep the numbers of the reports, which are `with_model` or not, beside the page, and render the page of all."""
    file = page.with_suffix(".json")
    kept: Json = json.loads(file.read_text("utf-8")) if file.exists() else {}
    for name, report in reports.items():
        if with_model:
            kept[name][_MODEL] = report["measures"]
        else:
            earlier = {_MODEL: kept[name][_MODEL]} if _MODEL in kept.get(name, {}) else {}
            kept[name] = {key: value for key, value in report.items() if key != "details"} | earlier
    names = [name for name in _DIARIES if name in kept] + [name for name in kept if name not in _DIARIES]
    kept = {name: kept[name] for name in names}
    file.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    page.write_text(render_page(kept), "utf-8")


def render_page(reports: Mapping[str, Json]) -> str:
    """Return the page as Markdown."""
    first = next(iter(reports))
    sessions = [report["sessions"] for report in reports.values()]
    return _HEAD.format(
        sessions=f"{min(sessions)} to {max(sessions)} sessions",
        table="\n".join(_table(reports, "measures")),
        model_table="\n".join(_table(reports, _MODEL)),
        diaries="\n".join(_describe(reports)),
        excerpt_of=first,
        excerpt="\n".join(reports[first]["excerpt"]),
    )


def _table(reports: Mapping[str, Json], part: str) -> Iterator[str]:
    reports = {name: report for name, report in reports.items() if part in report}
    titles = [f"`{name}`{', held out' if report['held_out'] else ''}" for name, report in reports.items()]
    yield _row(["", *titles])
    yield _row(["---", *("---:" for _ in titles)])
    for measure in next(iter(reports.values()), {part: {}})[part]:
        cells = [report[part][measure] for report in reports.values()]
        yield _row([measure, *(_share(count, whole) for count, whole in cells)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole}: {part / whole:.2f}" if whole else "–"


def _describe(reports: Mapping[str, Json]) -> Iterator[str]:
    for name, report in reports.items():
        held_out = " Nobody tunes on it, ever." if report["held_out"] else ""
        yield f"- `{name}`: {_DIARIES.get(name, 'a diary')}; {report['messages']} messages.{held_out}"
