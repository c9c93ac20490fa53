"""Built-in stores: where the module of each scheme of Ricordo's own is found, so that none is imported unused."""

from dataclasses import dataclass
from importlib import import_module

from ricordo.errors import ExtraMissing
from ricordo.stores.opening import StoreFactory

__all__ = ["BUILT_IN_STORES", "BuiltInStore", "import_store"]


@dataclass(frozen=True, kw_only=True)
class BuiltInStore:
    """Where a backend is found as `module:function`, what it keeps, and the extra that it needs."""

    import_path: str
    description: str
    extra: str = ""


BUILT_IN_STORES = {
    "none": BuiltInStore(import_path="nothing:open_nothing", description="nothing"),
    "sessions": BuiltInStore(
        import_path="session_files:open_session_files", description="a Markdown file for each session, and their index"
    ),
    "markdown": BuiltInStore(import_path="markdown:open_markdown", description="one Markdown file"),
    "jsonl": BuiltInStore(import_path="jsonl:open_jsonl", description="one file with a JSON document a line"),
    "json": BuiltInStore(import_path="json_document:open_json", description="one JSON document"),
    "kv": BuiltInStore(import_path="kv:open_kv", description="an embedded key-value database", extra="kv"),
    "fulltext": BuiltInStore(
        import_path="fulltext:open_fulltext", description="a file of entries, and a full-text index"
    ),
    "vector": BuiltInStore(
        import_path="vector:open_vector", description="a file of entries, and their vectors", extra="vector"
    ),
    "folder": BuiltInStore(
        import_path="memory_folder:open_memory_folder",
        description="an existing folder of MEMORY.md and topic files, as it is",
    ),
    "ring": BuiltInStore(import_path="ring:open_ring", description="the newest entries, in this process"),
    "mock": BuiltInStore(import_path="mock:open_mock", description="a list, in this process"),
    "fanout": BuiltInStore(import_path="fanout:open_fanout", description="what it is given, in several stores"),
}


def import_store(scheme: str, built_in: BuiltInStore) -> StoreFactory:
    """Import a backend and return what opens it. Raises: ExtraMissing where its package is not installed."""
    module, _, function = built_in.import_path.partition(":")
    try:
        factory: StoreFactory = getattr(import_module(f"ricordo.stores.{module}"), function)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("ricordo"):
            raise
        raise ExtraMissing(
            f"The store {scheme} needs {error.name}: pip install 'ricordo[{built_in.extra}]' installs it."
        ) from error
    return factory
