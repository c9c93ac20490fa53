"""Changes in a JSON text that leave every other character as it is. Pure.

Comments and commas before a closing bracket are accepted, as editors and agents write them into their settings. A path
leads from the outermost object down by the names of members.
"""

import json
import re
from collections.abc import Callable, Sequence

from ricordo.errors import DocumentInvalid
from ricordo.lazy import dataclass, lazy_compile
from ricordo.messages import JsonValue

__all__ = ["append_item", "load_json", "remove_items", "remove_member", "replace_items", "set_member"]

_SPACE = lazy_compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = lazy_compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_COMMENT = lazy_compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FIRST_INDENT = lazy_compile(r"\{[ \t\r]*\n([ \t]+)\S")
_DECODER = json.JSONDecoder()
_MAX_DEPTH = 100

Matcher = Callable[[JsonValue], bool]


@dataclass(frozen=True, kw_only=True)
class _Node:
    """A value with the place of its characters. A child of an object starts at its name; lists have no names."""

    start: int
    end: int
    value: JsonValue
    children: tuple["_Node", ...] = ()
    name: str = ""
    begin: int = 0


def load_json(text: str) -> JsonValue:
    """Return the value of `text`, None if it is blank. Raises: DocumentInvalid, with the line."""
    return _parse(text).value if text.strip() else None


def append_item(text: str, path: Sequence[str], item: JsonValue) -> str:
    """Return `text` with `item` at the end of the list at `path`, which is made if it is missing."""
    place, missing = _find_deepest(text, path)
    if not missing:
        return _insert(text, place, item, name=None)
    return set_member(text, path, [item])


def set_member(text: str, path: Sequence[str], value: JsonValue) -> str:
    """Return `text` with `value` at `path`; objects on the way are made if they are missing."""
    place, missing = _find_deepest(text, path)
    if not missing:
        rendered = _render(value, _indent_at(text, place.begin), _unit(text), _newline(text))
        return text[: place.start] + rendered + text[place.end :]
    for name in reversed(missing[1:]):
        value = {name: value}
    return _insert(text, place, value, name=missing[0])


def replace_items(text: str, path: Sequence[str], matches: Matcher, item: JsonValue) -> str:
    """Return `text` with `item` in place of the first item of the list at `path` that matches; other matches go."""
    found = _find_items(text, path, matches)
    for node in reversed(found):
        index = found.index(node)
        if index:
            text = _remove_child(text, _find_deepest(text, path)[0], node)
        elif node.value != item:
            rendered = _render(item, _indent_at(text, node.begin), _unit(text), _newline(text))
            text = text[: node.start] + rendered + text[node.end :]
    return text


def remove_items(text: str, path: Sequence[str], matches: Matcher) -> str:
    """Return `text` without the items of the list at `path` that match, and without lists and objects left empty."""
    found = _find_items(text, path, matches)
    for node in reversed(found):
        text = _remove_child(text, _find_deepest(text, path)[0], node)
    return _remove_empty(text, path) if found else text


def remove_member(text: str, path: Sequence[str]) -> str:
    """Return `text` without the member at `path`, and without the objects around it that are left empty."""
    place, missing = _find_deepest(text, path) if text.strip() else (None, path)
    if place is None or missing:
        return text
    text = _remove_child(text, _find_deepest(text, path[:-1])[0], place)
    return _remove_empty(text, path[:-1])


def _remove_empty(text: str, path: Sequence[str]) -> str:
    for length in range(len(path), 0, -1):
        place, missing = _find_deepest(text, path[:length])
        if missing or place.value or _COMMENT.search(text, place.start, place.end):
            break
        text = _remove_child(text, _find_deepest(text, path[: length - 1])[0], place)
    return text


def _find_items(text: str, path: Sequence[str], matches: Matcher) -> list[_Node]:
    if not text.strip():
        return []
    place, missing = _find_deepest(text, path)
    return [] if missing else [child for child in place.children if matches(child.value)]


def _find_deepest(text: str, path: Sequence[str]) -> tuple[_Node, Sequence[str]]:
    """Return the node at `path`, or the last one on the way to it, and the names that are missing below it.

    Of members with the same name the last one counts, as in every reader. Raises: DocumentInvalid.
    """
    place = _parse(text)
    for position, name in enumerate(path):
        if not isinstance(place.value, dict):
            raise DocumentInvalid(f"{'.'.join(path[:position]) or 'The document'} is not an object.")
        found = [child for child in place.children if child.name == name]
        if not found:
            return place, path[position:]
        place = found[-1]
    return place, ()


def _insert(text: str, place: _Node, value: JsonValue, *, name: str | None) -> str:
    """Insert a value at the end of a list, or a member at the end of an object."""
    if not isinstance(place.value, dict if name is not None else list):
        raise DocumentInvalid(f"{place.name or 'The document'} is not {'an object' if name is not None else 'a list'}.")
    newline, unit = _newline(text), _unit(text)
    outer = _indent_at(text, place.begin)
    closing = place.end - 1
    last = place.children[-1].end if place.children else place.start + 1
    tail = text[last:closing]
    is_inline = bool(place.children) and "\n" not in text[place.start : closing]
    indent = _indent_at(text, place.children[0].begin) if place.children and not is_inline else outer + unit
    rendered = json.dumps(value, ensure_ascii=False) if is_inline else _render(value, indent, unit, newline)
    rendered = rendered if name is None else f"{json.dumps(name, ensure_ascii=False)}: {rendered}"
    is_open = bool(place.children) and "," in _COMMENT.sub("", tail)
    comma = "," if place.children and not is_open else ""
    # where the last one has a comma behind it, the new last one has one too
    rendered = f"{rendered}," if is_open else rendered
    kept = tail.rstrip()
    if is_inline:
        return f"{text[:last]}{comma}{kept} {rendered}{tail[len(kept) :]}{text[closing:]}"
    rest = tail[len(kept) :] if "\n" in tail[len(kept) :] else newline + outer
    return f"{text[:last]}{comma}{kept}{newline}{indent}{rendered}{rest}{text[closing:]}"


def _remove_child(text: str, place: _Node, node: _Node) -> str:
    index = [child.begin for child in place.children].index(node.begin)
    start = len(text[: node.begin].rstrip())
    following = _comma_after(text, node.end)
    if following is not None and (index < len(place.children) - 1 or index == 0):
        text = text[:start] + text[following + 1 :]
    elif index == 0:
        text = text[:start] + text[node.end :]
    else:
        end = node.end if following is None else following + 1
        before = _comma_after(text, place.children[index - 1].end)
        assert before is not None
        # the comma before it stays where a comma may stand at the end
        kept = text[before] if following is not None else ""
        text = text[:before] + kept + text[before + 1 : max(start, before + 1)] + text[end:]
    if len(place.children) > 1:
        return text
    opening = place.start
    closing = _SPACE.match(text, opening + 1)
    assert closing is not None
    inner = text[opening + 1 : closing.end()]
    return text if inner.strip() else text[: opening + 1] + text[closing.end() :]


def _comma_after(text: str, position: int) -> int | None:
    space = _SPACE.match(text, position)
    assert space is not None
    return space.end() if text[space.end() : space.end() + 1] == "," else None


def _render(value: JsonValue, indent: str, unit: str, newline: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return (newline + indent).join(lines)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _unit(text: str) -> str:
    found = _FIRST_INDENT.search(text)
    return found[1] if found else "  "


def _indent_at(text: str, position: int) -> str:
    """Return the white space at the beginning of the line that holds `position`."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip())]


def _parse(text: str) -> _Node:
    start = _skip_space(text, 0)
    try:
        node = _parse_value(text, start, depth=0)
    except (ValueError, IndexError) as error:
        message, position = str(error), getattr(error, "pos", len(text))
        line = text.count("\n", 0, position) + 1
        raise DocumentInvalid(f"line {line}: {message or 'it ends too early'}") from error
    end = _skip_space(text, node.end)
    if end < len(text):
        raise DocumentInvalid(f"line {text.count(chr(10), 0, end) + 1}: something follows the document")
    return node


def _skip_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position


def _parse_value(text: str, start: int, *, depth: int) -> _Node:
    if depth > _MAX_DEPTH:
        raise json.JSONDecodeError("it is nested too deeply", text, start)
    match text[start : start + 1]:
        case "{":
            return _parse_container(text, start, "}", depth)
        case "[":
            return _parse_container(text, start, "]", depth)
        case '"':
            value, end = _DECODER.raw_decode(text, start)
            return _Node(start=start, begin=start, end=end, value=value)
    scalar = _SCALAR.match(text, start)
    if scalar is None:
        raise json.JSONDecodeError("a value is missing" if start < len(text) else "it ends too early", text, start)
    return _Node(start=start, begin=start, end=scalar.end(), value=json.loads(scalar[0]))


def _parse_container(text: str, start: int, closing: str, depth: int) -> _Node:
    children: list[_Node] = []
    position = _skip_space(text, start + 1)
    while text[position : position + 1] != closing:
        child = (_parse_member if closing == "}" else _parse_value)(text, position, depth=depth + 1)
        children.append(child)
        position = _skip_space(text, child.end)
        if text[position : position + 1] == ",":
            position = _skip_space(text, position + 1)
        elif text[position : position + 1] != closing:
            raise json.JSONDecodeError(f"a comma or {closing} is missing", text, position)
    value: JsonValue = (
        {child.name: child.value for child in children} if closing == "}" else [child.value for child in children]
    )
    return _Node(start=start, begin=start, end=position + 1, value=value, children=tuple(children))


def _parse_member(text: str, start: int, *, depth: int) -> _Node:
    if text[start : start + 1] != '"':
        raise json.JSONDecodeError("a name in quotes is missing", text, start)
    name, end = _DECODER.raw_decode(text, start)
    colon = _skip_space(text, end)
    if text[colon : colon + 1] != ":":
        raise json.JSONDecodeError("a colon is missing", text, colon)
    node = _parse_value(text, _skip_space(text, colon + 1), depth=depth)
    return _Node(start=node.start, begin=start, end=node.end, value=node.value, children=node.children, name=name)
