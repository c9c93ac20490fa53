"""Views, edits and paths of the tool `memory`, as Anthropic documents them (`memory_20250818`). Pure.

A file keeps its line ends; texts to find and to insert use `\\n`.

Invariant: a path has only one reading, below the root. Any path that could be read otherwise is refused.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from ricordo.agent.tools.paging import decode_text
from ricordo.errors import PathRefused, ToolFailed
from ricordo.guard import has_secret
from ricordo.lazy import lazy_compile
from ricordo.storage import FileInfo
from ricordo.storage.contract import safe_path
from ricordo.workspace.layout import AGENT_NOTES

__all__ = [
    "MAX_VIEW_CHARS",
    "display_path",
    "insert_lines",
    "parse_memory_path",
    "render_file",
    "render_folder",
    "render_snippet",
    "replace_once",
]


_LOOKS_LIKE_SLASH = frozenset("⁄∕⧸⧹⫻⫽／∖⧵＼﹨╱╲〳ノ丿⼃")
_DOT_LIKE = lazy_compile(r"[\s.․‥…．。｡﹒·・･•‧∙⋅⸱⸳ꓸ٠۰܁܂]+")


def parse_memory_path(path: str) -> str:
    """Return the path below the root, with `/` between its parts; empty for the root in any spelling.

    Empty parts and single dots are ignored. Raises: PathRefused for a path that is not below `/memories`, or that could
    be read as such a path.
    """
    root, _, rest = path.removeprefix("/").partition("/")
    if not path.startswith("/") or root != AGENT_NOTES:
        raise PathRefused(f"Error: Paths begin with /{AGENT_NOTES}, as in /{AGENT_NOTES}/notes.md, not {path[:80]!r}.")
    inside = safe_path(rest)
    if safe_path(_decode_percent(rest)).count("/") != inside.count("/") or bool(inside) != bool(
        safe_path(_decode_percent(rest))
    ):
        raise PathRefused(f"Error: The path {path[:80]!r} holds an encoded separator.")
    for name in inside.split("/") if inside else []:
        _check_name(name, path)
    if has_secret(inside):
        raise PathRefused("Error: The path holds a secret: it would be written as the name of a file.")
    return inside


def display_path(inside: str) -> str:
    """Return the path `inside` as the model writes it."""
    return f"/{AGENT_NOTES}/{inside}" if inside else f"/{AGENT_NOTES}"


def _decode_percent(text: str) -> str:
    """Return the text with every layer of percent encoding decoded; each makes it shorter."""
    while (plain := unquote(text)) != text:
        text = plain
    return text


def _check_name(name: str, path: str) -> None:
    normalized = unicodedata.normalize("NFKC", _decode_percent(name))
    if not _LOOKS_LIKE_SLASH.isdisjoint(name) or _DOT_LIKE.fullmatch(normalized):
        raise PathRefused(f"Error: The path {path[:80]!r} holds a name that looks like a way out of /{AGENT_NOTES}.")
    if normalized.startswith("."):
        raise PathRefused(f"Error: The path {path[:80]!r} holds a hidden name: those are never shown.")
    if name != name.strip() or name.endswith("."):
        raise PathRefused(f"Error: A name of {path[:80]!r} begins or ends with a space, or ends with a dot.")


MAX_VIEW_CHARS = 16_000
"""Maximum characters that one view shows, as this tool's description tells the model."""
_MAX_LINES = 999_999
_MAX_LISTED = 500
_MAX_OCCURRENCES = 20
_CONTEXT_LINES = 2
_SNIPPET_LINES = 24
_SNIPPET_WIDTH = 400
_DEPTH = 2
_UNITS = ("B", "K", "M", "G")
_SKIPPED_FOLDER = "node_modules"


def render_file(inside: str, data: bytes, view_range: Sequence[int] | None) -> str:
    """Return a text with line numbers, all of it or the lines of `view_range`, whose last number may be -1.

    A long text is cut between lines, and the result says where to go on; a single requested line is shown whole.
    Raises: ToolFailed for binary data or an invalid range.
    """
    path = display_path(inside)
    text = decode_text(data)
    if text is None:
        raise ToolFailed(f"Error: {path} is not a text, and only texts can be viewed here.")
    lines = _split_lines(text)
    if len(lines) > _MAX_LINES:
        raise ToolFailed(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = _parse_range(view_range, len(lines))
    rendered: list[str] = []
    remaining = MAX_VIEW_CHARS
    for number in range(first, last + 1):
        line = _number_line(number, lines[number - 1])
        if len(line) + 1 > remaining and first != last:
            rendered += [line[:MAX_VIEW_CHARS]] * (not rendered)
            break
        remaining -= len(line) + 1
        rendered.append(line)
    more = _continuation_notes(rendered, first, last, lines)
    return "\n".join([f"Here's the content of {path} with line numbers:", *rendered, *more])


def _continuation_notes(rendered: Sequence[str], first: int, last: int, lines: Sequence[str]) -> list[str]:
    last_shown = first + len(rendered) - 1
    if not rendered:
        return []
    notes = []
    if len(rendered[-1]) < len(_number_line(last_shown, lines[last_shown - 1])):
        notes.append(f"[Line {last_shown} is longer: view it whole with view_range [{last_shown}, {last_shown}].]")
    if last_shown < last:
        notes.append(f"[There is more, up to line {last}. Go on with view_range [{last_shown + 1}, {last}].]")
    return notes


def render_folder(inside: str, files: Iterable[FileInfo], folder: str) -> str:
    """Return the contents of a folder and its subfolders, by name, with sizes; `folder` is its path in a store.

    The size of a folder is that of all its files. Hidden names are left out.
    """
    path = display_path(inside)
    sizes: dict[tuple[tuple[str, ...], bool], int] = {}
    total = 0
    for info in files:
        names = tuple(info.path.removeprefix(f"{folder}/").split("/"))
        if any(name.startswith(".") or name == _SKIPPED_FOLDER for name in names):
            continue
        total += info.size
        for depth in range(1, min(_DEPTH, len(names)) + 1):
            key = (names[:depth], depth < len(names))
            sizes[key] = sizes.get(key, 0) + info.size
    rows = [
        f"{_format_size(size)}\t{path}/{'/'.join(names)}{'/' if is_folder else ''}"
        for (names, is_folder), size in sorted(sizes.items())
    ]
    more = [f"[{len(rows) - _MAX_LISTED} more are not listed: view a directory of it.]"]
    return "\n".join(
        [
            f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items and "
            f"{_SKIPPED_FOLDER}:",
            f"{_format_size(total)}\t{path}",
            *rows[:_MAX_LISTED],
            *(more if len(rows) > _MAX_LISTED else []),
        ]
    )


def replace_once(data: bytes, old: str, new: str, inside: str) -> tuple[bytes, int]:
    """Return the text with `old`, which occurs once, replaced by `new`, and the line number of the change, from 1.

    Raises: ToolFailed if it does not occur, or more than once.
    """
    normalized, target = data.replace(b"\r\n", b"\n"), _encode_lf(old)
    places = _find_occurrences(normalized, target)
    if not places:
        raise ToolFailed(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {display_path(inside)}."
        )
    numbers = [normalized.count(b"\n", 0, position) + 1 for position in places]
    if len(places) > 1:
        line_numbers = ", ".join(map(str, dict.fromkeys(numbers)))
        raise ToolFailed(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {line_numbers}."
            " Please ensure it is unique"
        )
    start, end = (_original_offset(data, normalized, position) for position in (places[0], places[0] + len(target)))
    ending = _line_ending(data[start:end]) or _line_ending(data) or b"\n"
    return data[:start] + _encode_lf(new).replace(b"\n", ending) + data[end:], numbers[0]


def insert_lines(data: bytes, line: int, text: str) -> bytes:
    """Return the text with `text` inserted as lines after `line`; 0 is before the first line.

    Raises: ToolFailed for a line that does not exist.
    """
    lines = data.split(b"\n")
    ending = _line_ending(data) or b"\n"
    if lines[-1] == b"":
        lines.pop()
    elif 0 <= line == len(lines):
        data += ending
    if not 0 <= line <= len(lines):
        raise ToolFailed(
            f"Error: Invalid `insert_line` parameter: {line}."
            f" It should be within the range of lines of the file: [0, {len(lines)}]"
        )
    offset = sum(len(each) + 1 for each in lines[:line]) if line < len(lines) else len(data)
    added = _encode_lf(text)
    added = (added if added.endswith(b"\n") else added + b"\n").replace(b"\n", ending)
    return data[:offset] + added + data[offset:]


def render_snippet(data: bytes, line: int, text: str) -> str:
    """Return the lines around a change that put `text` at `line`, with line numbers."""
    lines = _split_lines(data.decode("utf-8", "replace"))
    first = max(1, line - _CONTEXT_LINES)
    last = min(len(lines), line + text.count("\n") + _CONTEXT_LINES, first + _SNIPPET_LINES)
    return "\n".join(_number_line(number, lines[number - 1])[:_SNIPPET_WIDTH] for number in range(first, last + 1))


def _number_line(number: int, line: str) -> str:
    return f"{number:6d}\t{line}"


def _split_lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _parse_range(view_range: Sequence[int] | None, total: int) -> tuple[int, int]:
    if not view_range:
        return 1, total
    is_pair = len(view_range) == 2
    first, last = (view_range[0], view_range[1]) if is_pair else (0, 0)
    last = total if last == -1 else min(last, total) if first <= last else 0
    if not is_pair or not 1 <= first <= last:
        raise ToolFailed(
            f"Error: Invalid `view_range` parameter: {list(view_range)}."
            f" It is [first line, last line], from 1, with -1 for the end; the file has {total} lines."
        )
    return first, last


def _format_size(count: int) -> str:
    """Return a size in bytes for people, such as `5.5K`."""
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f}".removesuffix(".0") + _UNITS[unit]


def _encode_lf(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass").replace(b"\r\n", b"\n")


def _line_ending(data: bytes) -> bytes:
    """Return the ending of the first line; empty if there is no line end."""
    position = data.find(b"\n")
    return b"" if position < 0 else b"\r\n" if data[:position].endswith(b"\r") else b"\n"


def _find_occurrences(plain: bytes, target: bytes) -> list[int]:
    """Return the positions of `target`, overlapping ones too, up to a small maximum."""
    places: list[int] = []
    position = plain.find(target) if target else -1
    while position >= 0 and len(places) < _MAX_OCCURRENCES:
        places.append(position)
        position = plain.find(target, position + 1)
    return places


def _original_offset(data: bytes, plain: bytes, position: int) -> int:
    """Return the position in `data` for a position in the same text with `\\n` at all line ends."""
    start = 0
    for _ in range(plain.count(b"\n", 0, position)):
        start = data.find(b"\n", start) + 1
    return start + position - (plain.rfind(b"\n", 0, position) + 1)
