"""Changes in a TOML text that leave every other character as it is. Pure.

Only tables with a header of their own are changed. Another form, such as an inline table, raises DocumentInvalid,
and the person has to change it.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from ricordo.errors import DocumentInvalid
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import JsonValue

__all__ = ["load_toml", "remove_tables", "set_values"]

TablePath = tuple[str, ...]
_TOKEN = lazy_compile(
    r'"{3}(?:\\.|[^\\])*?"{3,5}|\'{3}.*?\'{3,5}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#[^\n]*|[\[\]{}\n]|[^"\'#\[\]{}\n]+',
    re.DOTALL,
)
_KEY = lazy_compile(r"""\s*(?:[\w-]+|"(?:\\.|[^"\\])*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"(?:\\.|[^"\\])*"|'[^']*'))*\s*=""")


@dataclass(frozen=True, kw_only=True)
class _Statement:
    """A header or a pair, from its first to behind its last character; `table` is the path of the table it opens.

    `value` is where the value of a pair begins, and `key` the path of its key.
    """

    start: int
    end: int
    table: TablePath | None = None
    is_array: bool = False
    key: TablePath = ()
    value: int = 0


def load_toml(text: str) -> dict[str, JsonValue]:
    """Return the document. Raises: DocumentInvalid, with the line."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DocumentInvalid(str(error)) from error


def set_values(text: str, table: Sequence[str], values: Mapping[str, JsonValue]) -> str:
    """Return `text` in which `table` has these values; its other values stay, and it is appended if it is missing.

    Raises: DocumentInvalid if the table is written in another form than with a header.
    """
    path, model = tuple(table), load_toml(text)
    present = _value_at(model, path)
    if isinstance(present, dict) and all(present.get(key) == value for key, value in values.items()):
        return text
    section = _find_section(text, path)
    changed = _append_table(text, path, values) if section is None else _change_section(text, section, values)
    try:
        found = _value_at(load_toml(changed), path)
    except DocumentInvalid:
        found = None
    old = present if isinstance(present, dict) else {}
    if found != {**old, **values}:
        raise DocumentInvalid(f"{'.'.join(path)} is written in a form that can't be changed safely.")
    return changed


def remove_tables(text: str, matches: Callable[[TablePath], bool]) -> str:
    """Return `text` without the tables whose path matches, and without those below them."""
    load_toml(text)
    sections = list(_sections(text))
    for header, last in reversed(sections):
        path = header.table or ()
        if any(matches(path[: length + 1]) for length in range(len(path))):
            end = _line_end(text, last.end)
            before = text[: header.start]
            # the empty line that stands before a table belongs to it
            if before.endswith(("\n\n", "\r\n\r\n")) and not text[end:].strip():
                before = before[: -len(_newline(text))]
            elif re.fullmatch(r"\s*\n\s*\n|\r?\n", before) or before.endswith(("\n\n", "\r\n\r\n")):
                end += len(text[end:]) - len(text[end:].lstrip("\r\n"))
            text = before + text[end:]
    return text


def _append_table(text: str, path: TablePath, values: Mapping[str, JsonValue]) -> str:
    newline = _newline(text)
    lines = [f"[{'.'.join(map(_render_key, path))}]", *_render_pairs(values)]
    gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
    return text + gap + newline.join(lines) + newline


def _change_section(text: str, section: Sequence[_Statement], values: Mapping[str, JsonValue]) -> str:
    pairs = {each.key: each for each in section[1:]}
    present = {key: value for key, value in values.items() if (key,) in pairs}
    missing = {key: value for key, value in values.items() if key not in present}
    edits = [(pairs[(key,)].value, pairs[(key,)].end, _render_value(value)) for key, value in present.items()]
    if missing:
        newline = _newline(text)
        end = _line_end(text, section[-1].end)
        gap = "" if text[:end].endswith("\n") else newline
        edits.append((end, end, gap + newline.join(_render_pairs(missing)) + newline))
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _find_section(text: str, path: TablePath) -> list[_Statement] | None:
    """Return the statements of the table, its header first; None if it has no header."""
    statements = list(_statements(text))
    headers = [index for index, each in enumerate(statements) if each.table is not None]
    for start, end in pairwise([*headers, len(statements)]):
        if statements[start].table == path and not statements[start].is_array:
            return statements[start:end]
    return None


def _sections(text: str) -> Iterator[tuple[_Statement, _Statement]]:
    """Yield the header and the last statement of each table."""
    header: _Statement | None = None
    last: _Statement | None = None
    for statement in _statements(text):
        if statement.table is not None:
            if header is not None and last is not None:
                yield header, last
            header = statement
        last = statement
    if header is not None and last is not None:
        yield header, last


def _statements(text: str) -> Iterator[_Statement]:
    """Yield the statements of a text that is known to be TOML."""
    depth, start, end = 0, None, 0
    for token in _TOKEN.finditer(text + "\n"):
        kind = token[0]
        if kind == "\n" and depth == 0:
            if start is not None:
                yield _read_statement(text, start, end)
            start = None
        elif not kind.startswith("#") and kind.strip():
            depth += (kind in "[{") - (kind in "]}") if len(kind) == 1 else 0
            start = token.start() + len(kind) - len(kind.lstrip()) if start is None else start
            end = token.start() + len(kind.rstrip())


def _read_statement(text: str, start: int, end: int) -> _Statement:
    content = text[start:end]
    if content.startswith("["):
        return _Statement(
            start=start, end=end, table=_read_path(content.strip("[]").strip()), is_array=content.startswith("[[")
        )
    key = _KEY.match(content)
    assert key is not None
    value = start + key.end() + len(content[key.end() :]) - len(content[key.end() :].lstrip())
    return _Statement(start=start, end=end, key=_read_path(key[0].rstrip("=").strip()), value=value)


def _read_path(text: str) -> TablePath:
    node: object = tomllib.loads(f"{text} = 0")
    path: list[str] = []
    while isinstance(node, dict):
        name, node = next(iter(node.items()))
        path.append(name)
    return tuple(path)


def _value_at(model: JsonValue, path: TablePath) -> JsonValue:
    for name in path:
        model = model.get(name) if isinstance(model, dict) else None
    return model


def _render_pairs(values: Mapping[str, JsonValue]) -> list[str]:
    return [f"{_render_key(key)} = {_render_value(value)}" for key, value in values.items()]


def _render_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _render_value(value: JsonValue) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_render_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
