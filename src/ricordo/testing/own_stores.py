"""Ricordo's own stores, with what they declare: what the suite is run over, and what the table in the docs shows."""

from ricordo.testing.stores import StoreConformance

__all__ = ["BUILT_IN_STORES"]


class _Nothing(StoreConformance):
    address = "none:"
    keeps = False
    capacity = 0


class _Sessions(StoreConformance):
    address = "sessions:{folder}"
    recalls = "sessions"


class _Markdown(StoreConformance):
    address = "markdown:{folder}"


class _Jsonl(StoreConformance):
    address = "jsonl:{folder}"
    scale = 100_000


class _Json(StoreConformance):
    address = "json:{folder}"


class _Kv(StoreConformance):
    address = "kv:{folder}"
    through_disk = False


class _FullText(StoreConformance):
    address = "fulltext:{folder}"
    order = "relevance"


class _Vector(StoreConformance):
    address = "vector:{folder}?embedder=hashing"
    order = "relevance"


class _Folder(StoreConformance):
    address = "folder:{folder}"
    free_text = True


class _Ring(StoreConformance):
    address = "ring:?capacity=40"
    keeps = False
    capacity = 40


class _Mock(StoreConformance):
    address = "mock:"
    keeps = False


class _Fanout(StoreConformance):
    address = "fanout:jsonl:{folder}/a,json:{folder}/b"


class _Layered(StoreConformance):
    address = "layered:{folder}"
    order = "relevance"
    recalls = "passages"


BUILT_IN_STORES: dict[str, type[StoreConformance]] = {
    "none": _Nothing,
    "sessions": _Sessions,
    "markdown": _Markdown,
    "jsonl": _Jsonl,
    "json": _Json,
    "kv": _Kv,
    "fulltext": _FullText,
    "vector": _Vector,
    "folder": _Folder,
    "ring": _Ring,
    "mock": _Mock,
    "fanout": _Fanout,
    "layered": _Layered,
}
"""By scheme."""
