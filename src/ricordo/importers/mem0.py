"""Memories of mem0: what `get_all` of the open package gives, and pages of its platform.

A file holds one such document, a list of memories, or one of these a line. A relation of its graph is a memory too.
"""

from collections.abc import Iterator, Mapping

from ricordo.importers.contract import ImportedMemory
from ricordo.importers.fields import parse_time, read_identifier, read_list, read_object, read_text
from ricordo.importers.source import ImportSource
from ricordo.messages.types import JsonValue

__all__ = ["read", "recognizes"]


_LISTS = ("results", "memories")
_PAGE_KEYS = frozenset({"results", "relations", "count", "next", "previous"})
_RELATION_KEYS = ("source", "relationship", "target")
_FOREIGN_KEYS = frozenset({"relationType", "from", "to"})
_OWN_KEYS = frozenset({"id", "memory", "user_id", "categories", "metadata"})


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` holds memories of mem0, or a page without any."""
    return any(_is_memory(record.value) or _is_page(record.value) for record in source.first_records)


def read(source: ImportSource) -> Iterator[ImportedMemory]:
    """Give the memories in the order of the source."""
    for record in source.records():
        yield from _read_value(record.value, record.line, source)


def _read_value(value: JsonValue, line: int, source: ImportSource) -> Iterator[ImportedMemory]:
    if _is_memory(value):
        yield from _read_memory(read_object(value), line, source, "The record")
        return
    if not _is_page(value):
        source.report(line, "The record is no memory and no page of memories.")
        return
    page = read_object(value)
    for key in _LISTS:
        for name, each in _name_items(page, key):
            yield from _read_memory(read_object(each), line, source, name)
    for name, each in _name_items(page, "relations"):
        yield from _read_relation(read_object(each), line, source, name)


def _name_items(page: Mapping[str, JsonValue], key: str) -> Iterator[tuple[str, JsonValue]]:
    """Give the items of a list with what people call them: the number counts where a line has several."""
    items = read_list(page.get(key))
    for number, item in enumerate(items, 1):
        yield (f"Number {number:,} of {key}" if len(items) > 1 else "The record"), item


def _is_memory(value: JsonValue) -> bool:
    record = read_object(value)
    return "memory" in record and ("id" in record or "user_id" in record or "created_at" in record)


def _is_page(value: JsonValue) -> bool:
    page = read_object(value)
    if any(_is_memory(each) for key in _LISTS for each in read_list(page.get(key))):
        return True
    is_plain = page.keys() <= _PAGE_KEYS
    if is_plain and page.get("results") == []:
        return True
    relations = read_list(page.get("relations"))
    return is_plain and any(not _FOREIGN_KEYS & read_object(each).keys() for each in relations)


def _read_memory(
    record: Mapping[str, JsonValue], line: int, source: ImportSource, name: str
) -> Iterator[ImportedMemory]:
    text = read_text(record.get("memory"))
    if not text:
        source.report(line, f"{name} has no text.")
        return
    rest = {key: value for key, value in record.items() if key not in _OWN_KEYS}
    ends = parse_time(record.get("expiration_date"))
    metadata = record.get("metadata")
    categories = [read_text(each) for each in read_list(record.get("categories"))]
    yield ImportedMemory(
        text=text,
        line=line,
        id=read_identifier(record.get("id")) or "",
        time=parse_time(record.get("updated_at")) or parse_time(record.get("created_at")),
        until=ends.date() if ends else None,
        user=read_identifier(record.get("user_id")),
        tags=tuple(filter(None, categories)),
        # the fields that a program gave it, beside those of mem0
        metadata={**(metadata if isinstance(metadata, dict) else {"metadata": metadata}), **rest},
    )


def _read_relation(
    record: Mapping[str, JsonValue], line: int, source: ImportSource, name: str
) -> Iterator[ImportedMemory]:
    words = [read_text(record.get(key)) for key in _RELATION_KEYS]
    if not all(words):
        source.report(line, f"{name} has no source, relationship or target.")
        return
    rest = {key: value for key, value in record.items() if key not in _RELATION_KEYS}
    yield ImportedMemory(
        text=" ".join(each.replace("_", " ") for each in words),
        line=line,
        metadata={**dict(zip(_RELATION_KEYS, words, strict=True)), **rest},
    )
