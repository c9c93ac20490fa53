"""Addresses of stores: one line with the name of the backend and the place of its entries.

    sessions:./.harness      jsonl:./notes      kv:/var/lib/notes      ring:?capacity=500      fanout:jsonl:a,kv:b

A path without a scheme opens session files. In a place and in options `%3F` is a question mark and `%25` a percent
sign; in options `%26` is an ampersand. A place may hold several addresses separated by commas. The place is decoded
first, so a question mark in one of them is written `%3F`, as in `fanout:ring:%3Fcapacity=500,kv:b`. A character that is
encoded inside one of them, such as a comma, gets `%25` in front, as in `fanout:jsonl:a%252Cb,kv:b`.

Invariant: `parse_address(str(address))` equals the address.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote, unquote

from ricordo import models
from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass, lazy_compile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from ricordo.models import Embedder
    from ricordo.scope import Scope
    from ricordo.search.contract import SearchIndex
    from ricordo.storage import FileStore
    from ricordo.stores.contract import Backend, StoreParts

__all__ = [
    "BUILT_IN_STORES",
    "DEFAULT_SCHEME",
    "SCHEMES",
    "Address",
    "BuiltInStore",
    "OpenRequest",
    "StoreFactory",
    "join_addresses",
    "parse_address",
    "split_addresses",
]


DEFAULT_SCHEME = "sessions"


@dataclass(frozen=True, kw_only=True)
class BuiltInStore:
    """A backend's import path as `module:function`, what it stores, and the extra that it needs.

    Without `has_folder` the text after the colon is not a folder. A user's folder is their own: only memories are
    written into it, and its owner is recorded elsewhere. An address that names no folder means `default_folder`. One
    that `stands_alone` may be written without a colon.
    """

    import_path: str
    description: str
    extra: str = ""
    has_folder: bool = True
    is_user_folder: bool = False
    default_folder: str = ""
    stands_alone: bool = False


BUILT_IN_STORES: Mapping[str, BuiltInStore] = {
    "none": BuiltInStore(import_path="in_memory:open_none", description="nothing", has_folder=False, stands_alone=True),
    "sessions": BuiltInStore(
        import_path="session_files:open_session_files",
        description="a Markdown file for each session, and their index",
        default_folder=".harness",
        stands_alone=True,
    ),
    "markdown": BuiltInStore(import_path="markdown:open_markdown", description="one Markdown file"),
    "jsonl": BuiltInStore(import_path="jsonl:open_jsonl", description="one file with a JSON document a line"),
    "json": BuiltInStore(import_path="json_document:open_json", description="one JSON document"),
    "kv": BuiltInStore(import_path="kv:open_kv", description="an embedded key-value database", extra="kv"),
    "fulltext": BuiltInStore(
        import_path="fulltext:open_fulltext", description="a file of entries, and a full-text index"
    ),
    "vector": BuiltInStore(import_path="vector:open_vector", description="a file of entries, and their vectors"),
    "folder": BuiltInStore(
        import_path="memory_folder:open_memory_folder",
        description="an existing folder of MEMORY.md and topic files, as it is",
        is_user_folder=True,
    ),
    "ring": BuiltInStore(
        import_path="in_memory:open_ring",
        description="the newest entries, in this process",
        has_folder=False,
        stands_alone=True,
    ),
    "mock": BuiltInStore(
        import_path="in_memory:open_mock", description="a list, in this process", has_folder=False, stands_alone=True
    ),
    "fanout": BuiltInStore(
        import_path="fanout:open_fanout", description="what it is given, in several stores", has_folder=False
    ),
}
"""Ricordo's stores, each by its scheme; the layered store over a root, `layered`, is not one of them."""
SCHEMES = (*BUILT_IN_STORES, "layered")
"""The built-in schemes."""
_ADDRESS_FORM = "write scheme:place, such as jsonl:./notes, with options after a question mark if any"
_SCHEME_PATTERN = lazy_compile(r"([A-Za-z][A-Za-z0-9_+-]+):(.*)", re.DOTALL)
_BARE_SCHEMES = frozenset({"layered", *(name for name, each in BUILT_IN_STORES.items() if each.stands_alone)})
"""Schemes that need no place, and so work without a colon."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """The address of a store: `scheme` names the backend, `location` is the part after it, `options` the part after
    `?`.

    `parse_address` reads `str()` of an address as the same address.
    """

    scheme: str
    location: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the text that `parse_address` reads."""
        options = "&".join(
            f"{_percent_encode(name, '?&=')}={_percent_encode(value, '?&')}" for name, value in self.options.items()
        )
        return f"{self.scheme}:{_percent_encode(self.location, '?')}{'?' if options else ''}{options}"


@dataclass(frozen=True, kw_only=True)
class OpenRequest:
    """The arguments for opening a backend.

    `open_files` returns the files of a folder, claimed for `scope`; the folder of another owner is a `ScopeMismatch`.
    `folder` is the absolute path of the address; None for a backend without a place. `open_another` opens another
    address, for backends that are built on others. `embedder` is set if one is configured, and `embedder_by_name` loads
    one by its name. `open_index` opens the keyword index with its database at a path, over the `workspace/` of files.
    `record_files` returns the files for records about a folder that must not be written to.
    """

    address: Address
    scope: "Scope"
    parts: "StoreParts"
    open_files: "Callable[[Path], AbstractAsyncContextManager[FileStore]]"
    open_another: "Callable[[str], AbstractAsyncContextManager[Backend]]"
    folder: Path | None = None
    embedder: "Embedder | None" = None
    embedder_by_name: "Callable[[str], Embedder]" = field(default_factory=lambda: models.load_embedder)
    open_index: "Callable[[Path, FileStore], Awaitable[SearchIndex]] | None" = None
    record_files: "Callable[[Path], FileStore] | None" = None


StoreFactory: TypeAlias = "Callable[[OpenRequest], AbstractAsyncContextManager[Backend]]"
"""Opens a backend and closes it at the end of the block."""


def parse_address(text: str) -> Address:
    """Parse an address. Raises: InvalidSetting, which shows the form of an address.

    A single letter before a colon is a drive, not a scheme; the case of a scheme is ignored. A scheme that needs no
    place may be written alone. It is never a folder: the folder `ring` is `./ring`.
    """
    if not isinstance(text, str):
        raise InvalidSetting(f"An address of a store is a text, not {text!r}: {_ADDRESS_FORM}.")
    address = text.strip()
    if not address or "\0" in _percent_decode(address):
        raise InvalidSetting(f"{text!r} names no store: {_ADDRESS_FORM}. Known schemes: {', '.join(SCHEMES)}.")
    if address.lower() in _BARE_SCHEMES:
        return Address(scheme=address.lower())
    if address.lower() in SCHEMES:
        name = address.lower()
        raise InvalidSetting(
            f"{text!r} names no place: write one, such as {name}:./notes. A folder of it is ./{address}."
        )
    match = _SCHEME_PATTERN.fullmatch(address)
    if match is None and address.startswith(":"):
        raise InvalidSetting(f"{text!r} names no scheme: {_ADDRESS_FORM}. Known schemes: {', '.join(SCHEMES)}.")
    scheme, rest = (match[1].lower(), match[2]) if match else (DEFAULT_SCHEME, address)
    place, _, options = rest.partition("?")
    return Address(scheme=scheme, location=_percent_decode(place), options=_parse_options(options, text))


def split_addresses(place: str) -> tuple[str, ...]:
    """Return the addresses in a place. Raises: InvalidSetting if one of them is empty."""
    addresses = tuple(_percent_decode(part.strip()) for part in place.split(","))
    if not all(addresses):
        raise InvalidSetting(f"{place!r} names no stores: write addresses with a comma between them.")
    return addresses


def join_addresses(addresses: Sequence[str]) -> str:
    """Return the place for these addresses, which `split_addresses` reads."""
    return ",".join(_percent_encode(address, ",") for address in addresses)


def _parse_options(text: str, address: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in text.split("&") if text else ():
        name, sign, value = part.partition("=")
        name = _percent_decode(name)
        if not sign or not name or name in options:
            raise InvalidSetting(f"{address!r} has an invalid option: write each option once, as name=value.")
        options[name] = _percent_decode(value)
    return options


def _percent_decode(text: str) -> str:
    return unquote(text, errors="surrogateescape")


def _percent_encode(text: str, special: str) -> str:
    """Return `text` with white space, the percent sign and `special` characters percent-encoded."""
    coded = (quote(each) if each == "%" or each in special or each.isspace() else each for each in text)
    return "".join(coded)
