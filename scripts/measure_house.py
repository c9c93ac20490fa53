"""Measure how easy the source is to enter: `python scripts/measure_house.py [--json]`.

Counted are the rooms (packages directly under `ricordo`) and the levels of their import graph, files, statements
without docstrings, functions that are named by a bare participle, public class names that stand in several rooms, and
import edges from tests to internal modules. Imports for type checking and imports inside functions count as edges.
"""

import ast
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["House", "is_bare_participle", "main", "measure"]

ROOT = Path(__file__).resolve().parents[1]
EDGES = frozenset({"adapters", "client", "hooks", "importers", "mcp", "server", "web"})
"""Rooms at the edge, each a thin layer over another program's interface; they are not counted as rooms.

Their files are counted on their own, as each host, protocol or format adds some and makes no other room larger.
"""

_IRREGULAR = """asked beaten become begun bent borne bought bound broken brought built caught chosen come cut dealt done
drawn driven eaten fallen fed felt forbidden forgiven forgotten fought found frozen given gone grown
heard held hidden hit hurt kept known laid led left lent let lost made meant met paid put read rebuilt
ridden risen run said seen sent set shaken shown shut sold spent split spoken spread stolen stood struck
stuck sung sunk swept sworn taken taught thought thrown told torn understood undone unread upheld
withdrawn woken won worn woven written"""
_ALSO_VERBS = "become come cut hit hurt let put read run set shut split spread"
"""Participles that are also the plain form of the verb, and so good names."""
_ENDS_LIKE_ONE = "bed bleed breed embed exceed feed heed indeed need proceed red seed shed sled speed succeed weed"
_PARTICIPLES = frozenset(_IRREGULAR.split()) - frozenset(_ALSO_VERBS.split())
_VERBS = frozenset(_ENDS_LIKE_ONE.split())


@dataclass(frozen=True, kw_only=True)
class House:
    """What was counted; `levels` is the longest chain of rooms and top files of which each imports the next.

    An edge is no level. `files` are those outside the edges, `edge_files` those of the edges.
    """

    rooms: int
    top_files: int
    levels: int
    files: int
    edge_files: int
    largest_file: int
    statements: int
    functions: int
    participles: int
    class_names_twice: tuple[str, ...]
    test_edges: int
    test_modules: int


def main() -> None:
    """Print the counts as a table of Markdown, or as JSON."""
    house = measure(ROOT)
    if "--json" in sys.argv[1:]:
        print(json.dumps(asdict(house), indent=1))
        return
    share = 100 * house.participles / house.functions
    print("| what | measured |", "|---|---|", sep="\n")
    print(f"| rooms; top files; levels of the import graph | {house.rooms}; {house.top_files}; {house.levels} |")
    print(f"| source files; of edges; lines of the largest | {house.files}; {house.edge_files}; {house.largest_file} |")
    print(f"| statements without docstrings | {house.statements} |")
    print(f"| functions named by a bare participle | {house.participles} of {house.functions}, {share:.1f} % |")
    print(f"| public class names in two rooms | {len(house.class_names_twice)} |")
    print(f"| import edges from tests to internal modules | {house.test_edges} to {house.test_modules} modules |")


def measure(root: Path) -> House:
    """Count what stands in the project at `root`."""
    source = root / "src" / "ricordo"
    trees = {_module(path, root / "src"): ast.parse(path.read_text("utf-8")) for path in sorted(source.rglob("*.py"))}
    paths = sorted(source.rglob("*.py"))
    rooms = {module.split(".")[1] for module in trees if module.count(".") > 1}
    edge_files = sum(path.relative_to(source).parts[0] in EDGES for path in paths)
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, _FUNCTION)]
    edges = set(_test_edges(root / "tests", trees))
    return House(
        rooms=len(rooms - EDGES),
        top_files=sum(path.parent == source and path.name not in ("__init__.py", "__main__.py") for path in paths),
        levels=_longest_chain(_imports_of_rooms(trees)),
        files=len(paths) - edge_files,
        edge_files=edge_files,
        largest_file=max(len(path.read_text("utf-8").splitlines()) for path in paths),
        statements=sum(_statements(tree) for tree in trees.values()),
        functions=len(functions),
        participles=sum(is_bare_participle(node.name) for node in functions),
        class_names_twice=tuple(sorted(_class_names_twice(trees))),
        test_edges=len(edges),
        test_modules=len({module for _, module in edges}),
    )


def is_bare_participle(name: str) -> bool:
    """Tell whether the whole name of a function is one past participle, such as `told` or `_folded`."""
    word = name.strip("_")
    return word in _PARTICIPLES or (word.isalpha() and word.endswith("ed") and len(word) > 3 and word not in _VERBS)


_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def _module(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def _statements(tree: ast.Module) -> int:
    docstrings = sum(
        ast.get_docstring(node, clean=False) is not None
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, *_FUNCTION))
    )
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree)) - docstrings


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield each dotted name that is imported, with the name that is taken from it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _imports_of_rooms(trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    imports = defaultdict[str, set[str]](set)
    for module, tree in trees.items():
        if module.count(".") == 0 or module == "ricordo.__main__":
            continue
        room = module.split(".")[1]
        if room in EDGES:
            continue
        others = {name.split(".")[1] for name in _imported(tree) if name.startswith("ricordo.")}
        imports[room] |= {other for other in others - {room} if any(each.split(".")[1:2] == [other] for each in trees)}
    return imports


def _longest_chain(imports: Mapping[str, set[str]]) -> int:
    """Return the number of rooms on the longest chain of imports; rooms that import each other count once."""
    depth: dict[str, int] = {}

    def depth_of(room: str, above: tuple[str, ...]) -> int:
        if room not in depth:
            below = [depth_of(each, (*above, room)) for each in imports.get(room, ()) if each not in (*above, room)]
            depth[room] = 1 + max(below, default=0)
        return depth[room]

    return max((depth_of(room, ()) for room in imports), default=0)


def _class_names_twice(trees: Mapping[str, ast.Module]) -> Iterator[str]:
    rooms = defaultdict[str, set[str]](set)
    for module, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                rooms[node.name].add(".".join(module.split(".")[:2]))
    counts = Counter({name: len(found) for name, found in rooms.items()})
    yield from (name for name, count in counts.items() if count > 1)


def _test_edges(tests: Path, trees: Mapping[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Yield each test file with each module below a room's own name that it imports."""
    for path in sorted(tests.rglob("*.py")):
        for name in _imported(ast.parse(path.read_text("utf-8"))):
            module = name if name in trees else name.rpartition(".")[0]
            if module.startswith("ricordo.") and module.count(".") > 1:
                yield str(path), module


if __name__ == "__main__":
    main()
