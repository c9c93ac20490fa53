"""Ricordo measured beside other memories, in one run of a script that knows them.

    python benchmarks/peer_adapter.py SCRIPT --venvs FOLDER --page docs/benchmarks [--peers A,B] [--sizes
    1000,10000] [...]

SCRIPT holds `PEERS`, a table of classes with `open`, `add_bulk`, `add_one`, `flush`, `search` and `close`, `ALIAS`, a
function `one` that measures one of them, and a `main` that starts itself anew for each and times what they do; the
arguments after SCRIPT are its own but `--page`, a folder that gets `peers.json` and `peers.md`. This file puts three
more into the table, and the processor time of each search beside its time by the clock:

    ricordo          `Memory.remember` and `Memory.recall`: plain files, found by words
    ricordo_hybrid   the same with an embedder that hands out the vectors of the script: found by words and meaning
    ricordo_vector   a store `vector:` with these vectors: found by meaning

All are durable when an add returns, and all add one entry at a time: there is no call for many.
"""

import importlib.util
import json
import os
import resource
import statistics
import sys
import tempfile
import time
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


class _RicordoHybrid(_Ricordo):
    name = "ricordo_hybrid"
    hybrid = True
    note = "as ricordo, with vectors in SQLite beside it; an exact scan, summed with the words"

    def flush(self) -> None:
        """Wait until everything has its vector; it is found by words before."""
        self._portal.call(self._opened.doctor)

    def _context(self) -> Any:
        from ricordo import Memory, Scope

        scope = Scope(user="me", project="benchmark")
        return Memory.open(self._folder / "root", scope=scope, embedder=_Embedder(self._dimension, self._lookup))


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


PEERS = {peer.name: peer for peer in (_Ricordo, _RicordoHybrid, _RicordoVector)}
_USUAL = {
    "--peers": "ricordo,ricordo_hybrid,ricordo_vector,ref_hybrid,sqlite_vec,langgraph_sqlite,lancedb,mem0",
    "--sizes": "10000,100000", "--queries": "110", "--add-budget": "900", "--timeout": "2400",
}  # fmt: skip


def main() -> None:
    """Run the script with three peers more, and write the page."""
    if _SCRIPT not in os.environ:
        if len(sys.argv) < 2:
            raise SystemExit(__doc__)
        os.environ[_SCRIPT] = str(Path(sys.argv.pop(1)).resolve())
    script: Any = _loaded(Path(os.environ[_SCRIPT]))
    script.PEERS.update(PEERS)
    script.ALIAS.update(dict.fromkeys(PEERS, "ricordo"))
    # It starts itself anew for each peer; what is started is this file.
    script.__file__ = str(Path(__file__).resolve())
    if "--one" in sys.argv:
        script.one = _counted(script)
        script.main()
    elif "--page" in sys.argv:
        at = sys.argv.index("--page")
        _, folder = sys.argv[at : at + 2]
        del sys.argv[at : at + 2]
        _written(script, Path(folder))
    else:
        script.main()


def _counted(script: ModuleType) -> Callable[..., dict[str, Any]]:
    """Return the function that measures a peer so that it tells the processor time of its searches too."""
    measure = script.one

    def one(name: str, *others: Any) -> dict[str, Any]:
        spent: list[float] = []

        class Counted(script.PEERS[name]):  # type: ignore[misc, name-defined]
            def search(self, *asked: Any) -> Any:
                begun = time.process_time()
                found = super().search(*asked)
                spent.append(1_000 * (time.process_time() - begun))
                return found

        script.PEERS[name] = Counted
        made: dict[str, Any] = measure(name, *others)
        return {**made, "search_cpu_p50_ms": round(statistics.median(spent), 3)} if spent else made

    return one


def _written(script: ModuleType, folder: Path) -> None:
    """Run it, and write what came out with how busy the machine was."""
    from peers_page import draw, page

    for option, value in _USUAL.items():
        if option not in sys.argv:
            sys.argv += [option, value]
    before, busy, load = time.monotonic(), _busy_seconds(), os.getloadavg()[0]
    with tempfile.NamedTemporaryFile() as out:
        sys.argv += ["--out", out.name]
        script.main()
        found = json.loads(Path(out.name).read_text("utf-8"))
    took = time.monotonic() - before
    found["machine"] = {
        "cores": os.cpu_count(), "seconds": round(took), "load_before": round(load, 2),
        "others": round(max(_busy_seconds() - busy, 0.0) / took, 2),
    }  # fmt: skip
    for row in found["results"]:
        row.pop("trace", None)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (folder / "peers.md").write_text(page(found), "utf-8")
    if not draw(found, folder):
        print("The charts stay as they are: matplotlib is not there.", file=sys.stderr)


def _busy_seconds() -> float:
    """Return for how many seconds the cores were busy with other processes than this and its children."""
    try:
        columns = Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:]
    except OSError:
        return 0.0
    idle = int(columns[3]) + int(columns[4])
    every = sum(map(int, columns[:8])) - idle
    own = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return every / os.sysconf("SC_CLK_TCK") - sum(each.ru_utime + each.ru_stime for each in own)


def _loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("peer_script", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} can't be loaded.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
