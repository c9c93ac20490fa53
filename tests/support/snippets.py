"""The runnable blocks of a Markdown page.

Every `python` and `console` block of a page runs, in the order of the page and in one folder, unless the line before it
is `<!-- not run: reason -->`. In a console block a line that starts with `$ ` is a command, which has to succeed; the
lines after it have to appear in its output in that order, where `…` stands for anything. A `text` block after the line
`<!-- prints -->` holds, in the same way, what the Python block before it prints. A block after the line
`<!-- file: name -->` is a file of that name in the folder.
"""

import re
from dataclasses import dataclass
from typing import Literal

__all__ = ["Block", "Command", "blocks", "commands", "missing_line"]

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^(?P=indent)```\s*$", re.MULTILINE | re.DOTALL
)
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>.+?) -->\s*$")
_FILE = re.compile(r"<!-- file: (?P<name>[\w.-]+) -->\s*$")
_PRINTS = re.compile(r"<!-- prints -->\s*$")


@dataclass(frozen=True, kw_only=True)
class Block:
    """One fenced block; `line` counts from 1, `name` is that of a file, `reason` says why it is not run."""

    language: Literal["python", "console", "printed", "file"]
    body: str
    line: int
    name: str = ""
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command of a console block, and the lines its output is to show."""

    line: str
    shows: tuple[str, ...]


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page that are run or compared, in their order."""
    found = []
    for match in _FENCE.finditer(page):
        before = page[: match.start()]
        line = before.count("\n") + 1
        body = "\n".join(text.removeprefix(match["indent"]) for text in match["body"].splitlines()) + "\n"
        skipped = _NOT_RUN.search(before)
        reason = skipped["reason"] if skipped else None
        if file := _FILE.search(before):
            found.append(Block(language="file", body=body, line=line, name=file["name"]))
        elif match["language"] == "python":
            found.append(Block(language="python", body=body, line=line, reason=reason))
        elif match["language"] == "console":
            found.append(Block(language="console", body=body, line=line, reason=reason))
        elif _PRINTS.search(before):
            found.append(Block(language="printed", body=body, line=line))
    return found


def commands(body: str) -> list[Command]:
    """Return the commands of a console block with the output that is shown for each."""
    found: list[Command] = []
    for text in body.splitlines():
        if text.startswith("$ "):
            found.append(Command(line=text[2:], shows=()))
        elif found and found[-1].line.endswith("\\"):
            found[-1] = Command(line=f"{found[-1].line}\n{text}", shows=())
        elif found and text.strip():
            found[-1] = Command(line=found[-1].line, shows=(*found[-1].shows, text))
    return found


def missing_line(shows: tuple[str, ...], output: str) -> str | None:
    """Return the first shown line that the output lacks at its place, or None if all are there in order."""
    rest = iter(output.splitlines())
    for shown in shows:
        pattern = re.compile(".*".join(re.escape(part.strip()) for part in shown.split("…")))
        if shown.strip() != "…" and not any(pattern.fullmatch(line.strip()) for line in rest):
            return shown
    return None
