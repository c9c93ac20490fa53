"""The kinds of parts that a host's files can have. Pure."""

import shlex
from collections.abc import Mapping, Sequence

from ricordo.errors import DocumentInvalid
from ricordo.hooks.install.json_text import (
    append_item,
    load_json,
    remove_items,
    remove_member,
    replace_items,
    set_member,
)
from ricordo.hooks.install.toml_text import remove_tables, set_values
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue

__all__ = ["JsonItem", "JsonMember", "ManagedBlock", "TomlTable", "WholeFile", "join_command"]

_EMPTY_OBJECT = "{}\n"


def join_command(words: Sequence[str], platform: str) -> str:
    """Return a command as one text for the shell of a platform."""
    if platform != "win32":
        return shlex.join(words)
    return " ".join(f'"{word}"' if set(word) & set(" &()^") else word for word in words)


@dataclass(frozen=True, kw_only=True)
class WholeFile:
    """A file that is all ours."""

    path: str
    content: str

    def add(self, text: str | None) -> str:
        """Return the content."""
        del text
        return self.content

    def remove(self, text: str) -> str | None:
        """Return None: nothing else is in it."""
        del text
        return None


@dataclass(frozen=True, kw_only=True)
class JsonItem:
    """An item of a list in a JSON file, such as a hook. An item with a text that holds all of `marks` is ours.

    `template` is a new file without the item.
    """

    path: str
    place: tuple[str, ...]
    item: JsonValue
    marks: tuple[str, ...]
    template: str = _EMPTY_OBJECT

    def add(self, text: str | None) -> str:
        """Return the file with the item: in the place of an older one, else at the end of the list."""
        text = text if text and text.strip() else self.template
        replaced = replace_items(text, self.place, self._is_ours, self.item)
        return replaced if _has(replaced, self.place, self.item) else append_item(replaced, self.place, self.item)

    def remove(self, text: str) -> str | None:
        """Return the file without the item."""
        return _none_if_empty(remove_items(text, self.place, self._is_ours), self.template)

    def _is_ours(self, item: JsonValue) -> bool:
        return any(all(mark in text for mark in self.marks) for text in _list_texts(item))


@dataclass(frozen=True, kw_only=True)
class JsonMember:
    """A member of an object in a JSON file, such as an MCP server by its name; what else stands in it stays.

    `template` is a new file without the member.
    """

    path: str
    place: tuple[str, ...]
    value: Mapping[str, JsonValue]
    template: str = _EMPTY_OBJECT

    def add(self, text: str | None) -> str:
        """Return the file with the member."""
        text = text if text and text.strip() else self.template
        present = _value_at(load_json(text), self.place)
        if not isinstance(present, dict):
            return set_member(text, self.place, dict(self.value))
        for key, value in self.value.items():
            if key not in present or present[key] != value:
                text = set_member(text, (*self.place, key), value)
        return text

    def remove(self, text: str) -> str | None:
        """Return the file without the member."""
        return _none_if_empty(remove_member(text, self.place), self.template)


@dataclass(frozen=True, kw_only=True)
class TomlTable:
    """A table in a TOML file, such as an MCP server."""

    path: str
    place: tuple[str, ...]
    values: Mapping[str, JsonValue]

    def add(self, text: str | None) -> str:
        """Return the file with the values in the table; what else a person wrote into it stays."""
        return set_values(text or "", self.place, self.values)

    def remove(self, text: str) -> str | None:
        """Return the file without the table and those below it."""
        return remove_tables(text, lambda path: path == self.place) or None


_BLOCK_BEGIN = "<!-- ricordo: begin. Written by `ricordo install`; what stands between these two lines is replaced. -->"
_BLOCK_END = "<!-- ricordo: end -->"
_BLOCK_MARK = "<!-- ricordo: begin"


@dataclass(frozen=True, kw_only=True)
class ManagedBlock:
    """Lines in a Markdown file of a person, between two lines that mark them. Every other byte stays as it is."""

    path: str
    content: str

    def add(self, text: str | None) -> str:
        """Return the file with the block: in the place of an older one, else at the end, after an empty line."""
        text = text or ""
        newline = "\r\n" if "\r\n" in text else "\n"
        block = newline.join([_BLOCK_BEGIN, *self.content.strip().splitlines(), _BLOCK_END])
        found = _find_block(text)
        if found is not None:
            return text[: found[0]] + block + text[found[1] :]
        if text and not text.endswith("\n"):
            # a file without an end of its last line stays one, which tells whose the end before the block is
            return text + newline + block
        return (text + newline if text else "") + block + newline

    def remove(self, text: str) -> str | None:
        """Return the file without the block."""
        found = _find_block(text)
        if found is None:
            return text
        before, after = text[: found[0]], text[found[1] :]
        newline = "\r\n" if before.endswith("\r\n") or after.startswith("\r\n") else "\n"
        rest = before.removesuffix(newline)
        # the line end before the block is ours after an empty line, and where the file ends with the block
        before = rest if rest.endswith("\n") or not after else before
        return before + after.removeprefix(newline) or None


def _find_block(text: str) -> tuple[int, int] | None:
    """Return where the block begins and ends; None if there is none. Raises: DocumentInvalid for a torn one."""
    starts, ends = _find_lines(text, _BLOCK_MARK), _find_lines(text, _BLOCK_END)
    if not starts and not ends:
        return None
    if len(starts) != 1 or len(ends) != 1 or ends[0] < starts[0]:
        raise DocumentInvalid(
            f"the block of Ricordo is not whole: it needs one line that begins with {_BLOCK_MARK!r}, and after it one "
            f"that is {_BLOCK_END!r}. Mend or remove them."
        )
    return starts[0], ends[0] + len(_BLOCK_END)


def _find_lines(text: str, beginning: str) -> list[int]:
    """Return where the lines begin that begin with a text."""
    starts, position = [], text.find(beginning)
    while position >= 0:
        if position == 0 or text[position - 1] == "\n":
            starts.append(position)
        position = text.find(beginning, position + 1)
    return starts


def _has(text: str, place: tuple[str, ...], item: JsonValue) -> bool:
    items = _value_at(load_json(text), place)
    return isinstance(items, list) and item in items


def _value_at(value: JsonValue, place: tuple[str, ...]) -> JsonValue:
    for name in place:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _list_texts(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inner for text in _list_texts(each)]


def _none_if_empty(text: str, template: str) -> str | None:
    return None if text.split() in ([], ["{}"], template.split()) else text
