"""The kinds of parts that a host's files can have. Pure."""

from collections.abc import Mapping

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

__all__ = ["JsonItem", "JsonMember", "TomlTable", "WholeFile"]


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
    """An item of a list in a JSON file, such as a hook. An item with a text that holds all of `marks` is ours."""

    path: str
    place: tuple[str, ...]
    item: JsonValue
    marks: tuple[str, ...]

    def add(self, text: str | None) -> str:
        """Return the file with the item: in the place of an older one, else at the end of the list."""
        text = text if text and text.strip() else "{}\n"
        replaced = replace_items(text, self.place, self._is_ours, self.item)
        return replaced if _has(replaced, self.place, self.item) else append_item(replaced, self.place, self.item)

    def remove(self, text: str) -> str | None:
        """Return the file without the item."""
        return _none_if_empty(remove_items(text, self.place, self._is_ours))

    def _is_ours(self, item: JsonValue) -> bool:
        return any(all(mark in text for mark in self.marks) for text in _list_texts(item))


@dataclass(frozen=True, kw_only=True)
class JsonMember:
    """A member of an object in a JSON file, such as an MCP server by its name."""

    path: str
    place: tuple[str, ...]
    value: JsonValue

    def add(self, text: str | None) -> str:
        """Return the file with the member."""
        text = text if text and text.strip() else "{}\n"
        return (
            text if _value_at(load_json(text), self.place) == self.value else set_member(text, self.place, self.value)
        )

    def remove(self, text: str) -> str | None:
        """Return the file without the member."""
        return _none_if_empty(remove_member(text, self.place))


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


def _none_if_empty(text: str) -> str | None:
    return None if text.split() in ([], ["{}"]) else text
