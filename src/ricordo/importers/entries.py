"""A memory of another system as an entry: its text, kind, tags and times, and every other field as metadata."""

from collections.abc import Mapping

from ricordo.clock import truncate_to_milliseconds
from ricordo.guard import has_secret
from ricordo.importers.contract import ImportedMemory
from ricordo.importers.reader import FoundSource
from ricordo.lazy import lazy_compile
from ricordo.messages import JsonValue
from ricordo.messages.json_text import dumps
from ricordo.runtime.entry_import import IMPORT_ID_FIELD
from ricordo.workspace.entry import Entry, Source, is_system_field, with_validity

__all__ = ["make_entry", "name_origin"]


_NAME_PART = lazy_compile("[^A-Za-z0-9_-]+")
_MAX_NAME = 60
_MAX_VALUE = 10_000
_MAX_FIELDS = 100


def make_entry(memory: ImportedMemory, found: FoundSource) -> Entry:
    """Return the entry of a memory of another system, as `Memory.import_entries` takes it.

    What has no field of an entry is in its metadata, under names that an entry allows; what is no text is JSON. The id
    in the other system is the metadata `import-id`. Fields beyond 100, and values beyond 10,000 characters, are left
    out and reported.
    """
    fields = {IMPORT_ID_FIELD: memory.id, "foreign-user": memory.user, **memory.metadata}
    given = {name: value for name, value in fields.items() if value not in (None, "", [], {})}
    metadata = _to_metadata(given)
    if left_out := len(given) - len(metadata):
        reason = f"read without fields that are too many or too long: {left_out:,}"
        found.source.report(memory.line, reason, skipped=False)
    entry = Entry(
        content=memory.text,
        kind=memory.kind.strip() or "fact",
        tags=memory.tags,
        since=memory.time and truncate_to_milliseconds(memory.time),
        by="import",
        source=Source(origin=f"{name_origin(found)}:{memory.line}"),
        extra=tuple(metadata.items()),
    )
    return with_validity(entry, end=memory.until)


def name_origin(found: FoundSource) -> str:
    """Return the format and the name of a source."""
    return f"{found.form.name if found.form else 'unknown'}:{found.source.filename}"


def _to_metadata(fields: Mapping[str, JsonValue]) -> dict[str, str]:
    metadata: dict[str, str] = {}
    for key, value in fields.items():
        text = value if isinstance(value, str) else dumps(value)
        if len(text) > _MAX_VALUE or len(metadata) == _MAX_FIELDS:
            continue
        name = "" if has_secret(key) else _NAME_PART.sub("-", key).strip("-_")[:_MAX_NAME]
        if not name[:1].isalpha() or is_system_field(name):
            name = f"foreign-{name}".rstrip("-")
        while name in metadata:
            name += "-"
        metadata[name] = text
    return metadata
