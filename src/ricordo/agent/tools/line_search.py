"""A search of lines by a regular expression, run as a program in its own process, which can be killed.

Matching in Python holds the interpreter lock, and some patterns never end. It imports only the standard library. It
reads a JSON object `{"pattern", "ignore_case", "most", "width", "texts": [[name, text], ...]}` and writes `{"lines":
[[name, number, character, text], ...], "error", "more"}`.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator

__all__ = ["find_lines"]


def find_lines(
    pattern: re.Pattern[str], texts: Iterable[tuple[str, str]], *, width: int
) -> Iterator[tuple[str, int, int, str]]:
    """Yield each matching line: the name of its text, its number from 1, an offset, and at most `width` characters.

    The offset is the position in the line, from 0, at which the characters start.
    """
    for name, text in texts:
        # The end of a line is its end for a pattern too, also in files from Windows.
        for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
            match = pattern.search(line)
            if match:
                start = 0 if len(line) <= width else max(0, min(match.start() - width // 4, len(line) - width))
                yield name, number, start, line[start : start + width]


def _search(request: dict[str, object]) -> dict[str, object]:
    try:
        pattern = re.compile(str(request["pattern"]), re.IGNORECASE if request["ignore_case"] else 0)
    except (re.error, OverflowError, RecursionError) as error:
        return {"lines": [], "error": str(error), "more": False}
    lines: list[object] = []
    max_lines = int(str(request["most"]))
    for matched in find_lines(pattern, request["texts"], width=int(str(request["width"]))):  # type: ignore[arg-type]
        if len(lines) == max_lines:
            return {"lines": lines, "error": "", "more": True}
        lines.append(matched)
    return {"lines": lines, "error": "", "more": False}


if __name__ == "__main__":
    json.dump(_search(json.loads(sys.stdin.buffer.read())), sys.stdout)
