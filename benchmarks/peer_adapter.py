"""Ricordo measured beside other memories, in one run of a script that knows them.

    python benchmarks/peer_adapter.py SCRIPT --peers ricordo,ricordo_vector,ref_hybrid --sizes 1000,10000 [...]

SCRIPT holds `PEERS`, a table of classes with `open`, `add_bulk`, `add_one`, `flush`, `search` and `close`, `ALIAS`,
and a `main` that starts itself anew for each of them and times what they do; the arguments after SCRIPT are its
own. This file puts two more into the table:

    ricordo          `Memory.remember` and `Memory.recall`: plain files, found by words
    ricordo_vector   a store `vector:`, with the vectors that the script hands out: found by meaning

Both are durable when an add returns, and both add one entry at a time: there is no call for many.
"""

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

__all__ = ["PEERS", "main"]

_SCRIPT = "RICORDO_PEER_SCRIPT"
Vector = Any  # an array of numpy, which only some of the environments have


class _Peer:
    """What the script asks of a peer; entries are known to it by numbers."""

    name: ClassVar[str]
    hybrid: ClassVar[bool] = False
    durable: ClassVar[str] = "power"
    note: ClassVar[str]
    bulk: ClassVar[int] = 1000
    # A threaded product of a matrix and a vector waits for a busy core.
    env: ClassVar[dict[str, str]] = {"OPENBLAS_NUM_THREADS": "1"}

    def __init__(self, path: str, dim: int, lookup: Callable[[str], Vector]) -> None:
        """Keep everything in the folder `path`; `lookup` gives the vector of a text."""
        self._folder = Path(path)
        self._dimension = dim
        self._lookup = lookup
        self._numbers: dict[str, int] = {}
        self._portal: Any = None

    def imp(self) -> None:
        """Import Ricordo, which is timed; other peers run where it is not installed."""
        importlib.import_module("ricordo")
        importlib.import_module("ricordo.runtime.stores")

    def open(self) -> None:
        """Open what is kept in the folder."""
        from contextlib import ExitStack

        from anyio.from_thread import start_blocking_portal

        self._held = ExitStack()
        self._portal = self._held.enter_context(start_blocking_portal())
        self._opened = self._held.enter_context(self._portal.wrap_async_context_manager(self._context()))

    def add_bulk(self, ids: Sequence[int], docs: Sequence[str], vecs: Sequence[Vector]) -> None:
        """Add one after the other."""
        self._portal.call(self._add, ids, docs)

    def add_one(self, i: int, doc: str, vec: Vector) -> None:
        """Add an entry; it is durable and found when this returns."""
        self.add_bulk([i], [doc], [vec])

    def flush(self) -> None:
        """Do nothing: an entry is searchable at once."""

    def search(self, text: str, vec: Vector, k: int) -> list[int]:
        """Return the numbers of the best `k` entries."""
        del vec
        hits = self._portal.call(self._found, text, k)
        return [self._numbers[hit.entry.id] for hit in hits if hit.entry.id in self._numbers]

    def close(self) -> None:
        """Close it; it can be opened again."""
        self._held.close()

    def _context(self) -> Any:
        raise NotImplementedError

    async def _add(self, ids: Sequence[int], docs: Sequence[str]) -> None:
        for number, text in zip(ids, docs, strict=True):
            self._numbers[await self._kept(text)] = number

    async def _kept(self, text: str) -> str:
        raise NotImplementedError

    async def _found(self, text: str, k: int) -> Any:
        raise NotImplementedError


class _Ricordo(_Peer):
    name = "ricordo"
    note = "Memory.remember and Memory.recall; entries in Markdown files, an index of words beside them; no vectors"

    def _context(self) -> Any:
        from ricordo import Memory, Scope

        return Memory.open(self._folder / "root", scope=Scope(user="me", project="benchmark"))

    async def _kept(self, text: str) -> str:
        return str((await self._opened.remember(text)).id)

    async def _found(self, text: str, k: int) -> Any:
        return await self._opened.recall(text, limit=k)


class _RicordoVector(_Peer):
    name = "ricordo_vector"
    note = "store vector: save and recall; entries in Markdown files, vectors in SQLite beside them, an exact scan"

    def _context(self) -> Any:
        from ricordo import Scope
        from ricordo.runtime.stores import open_store

        scope = Scope(user="me", project="benchmark")
        return open_store(
            f"vector:{self._folder / 'store'}", scope=scope, embedder=_Embedder(self._dimension, self._lookup)
        )

    async def _kept(self, text: str) -> str:
        from ricordo.workspace.entry import Entry

        return str((await self._opened.save(Entry(content=text))).id)

    async def _found(self, text: str, k: int) -> Any:
        return await self._opened.recall(text, k)


class _Embedder:
    """Gives the vectors that the script has made before, so that no model is timed."""

    def __init__(self, dimension: int, lookup: Callable[[str], Vector]) -> None:
        self._dimension = dimension
        self._lookup = lookup

    @property
    def model_id(self) -> str:
        return "given"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Vector:
        numpy = importlib.import_module("numpy")
        return numpy.stack([self._lookup(text) for text in texts]).astype(numpy.float32)


PEERS = {peer.name: peer for peer in (_Ricordo, _RicordoVector)}


def main() -> None:
    """Run the script with two peers more."""
    if _SCRIPT not in os.environ:
        if len(sys.argv) < 2:
            raise SystemExit(__doc__)
        os.environ[_SCRIPT] = str(Path(sys.argv.pop(1)).resolve())
    script = _loaded(Path(os.environ[_SCRIPT]))
    script.PEERS.update(PEERS)
    script.ALIAS.update(dict.fromkeys(PEERS, "ricordo"))
    # It starts itself anew for each peer; what is started is this file.
    script.__file__ = str(Path(__file__).resolve())
    script.main()


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("peer_script", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} can't be loaded.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
