"""The knowledge graph of the memory server that the makers of the Model Context Protocol give as an example.

Its file has an entity or a relation a line; what its tool `read_graph` gives is one document with both. Each
observation of an entity is a memory, and so is each relation.
"""

from collections.abc import Iterator, Mapping

from ricordo.importers.contract import ImportedMemory
from ricordo.importers.fields import read_list, read_object, read_text
from ricordo.importers.source import ImportSource
from ricordo.messages.types import JsonValue

__all__ = ["read", "recognizes"]


_ENTITY_KEYS = frozenset({"type", "name", "entityType", "observations"})
_RELATION_KEYS = frozenset({"type", "from", "to", "relationType"})


def recognizes(source: ImportSource) -> bool:
    """Return whether `source` holds entities or relations."""
    return any(
        _is_entity(each) or _is_relation(each) for record in source.first_records for each in _open(record.value)
    )


def read(source: ImportSource) -> Iterator[ImportedMemory]:
    """Give the observations and relations in the order of the source."""
    for record in source.records():
        for value in _open(record.value):
            if _is_entity(value):
                yield from _read_entity(read_object(value), record.line, source)
            elif _is_relation(value):
                yield from _read_relation(read_object(value), record.line, source)
            else:
                source.report(record.line, "The record is no entity and no relation.")


def _open(value: JsonValue) -> list[JsonValue]:
    """Return the entities and relations in a document of both, or the value itself."""
    graph = read_object(value)
    parts = [graph[key] for key in ("entities", "relations") if isinstance(graph.get(key), list)]
    return [each for part in parts for each in read_list(part)] if parts and "name" not in graph else [value]


def _is_entity(value: JsonValue) -> bool:
    record = read_object(value)
    return record.get("type") == "entity" or {"name", "entityType", "observations"} <= record.keys()


def _is_relation(value: JsonValue) -> bool:
    record = read_object(value)
    return record.get("type") == "relation" or {"from", "to", "relationType"} <= record.keys()


def _read_entity(record: Mapping[str, JsonValue], line: int, source: ImportSource) -> Iterator[ImportedMemory]:
    name, kind = read_text(record.get("name")), read_text(record.get("entityType"))
    if not name:
        source.report(line, "The entity has no name.")
        return
    rest = {key: value for key, value in record.items() if key not in _ENTITY_KEYS}
    metadata = {"entity": name, "entity_type": kind or None, **rest}
    title = name.replace("_", " ")
    observations = record.get("observations")
    texts = [observations] if isinstance(observations, str) else read_list(observations)
    for number, value in enumerate(texts, 1):
        text = read_text(value) or read_text(read_object(value).get("content"))
        if not text:
            source.report(line, f"Observation {number:,} has no text.")
            continue
        # an observation is written for its entity, and has to be understood without it
        is_about = title.casefold() in text.casefold() or name.casefold() in text.casefold()
        yield ImportedMemory(text=text if is_about else f"{title}: {text}", line=line, metadata=metadata)
    if not texts:
        yield ImportedMemory(
            text=f"{title} ({kind.replace('_', ' ')})" if kind else title, line=line, metadata=metadata
        )


def _read_relation(record: Mapping[str, JsonValue], line: int, source: ImportSource) -> Iterator[ImportedMemory]:
    words = [read_text(record.get(key)) for key in ("from", "relationType", "to")]
    if not all(words):
        source.report(line, "The relation has no from, relationType or to.")
        return
    rest = {key: value for key, value in record.items() if key not in _RELATION_KEYS}
    metadata = {"relation_from": words[0], "relation_type": words[1], "relation_to": words[2], **rest}
    yield ImportedMemory(text=" ".join(each.replace("_", " ") for each in words), line=line, metadata=metadata)
