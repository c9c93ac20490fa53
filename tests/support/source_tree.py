"""The package's source as syntax trees, and the repository's files, for tests about how it is built."""

import ast
import functools
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PACKAGE", "ROOT", "Definition", "Module", "definitions", "modules", "repository_files"]

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "ricordo"

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, kw_only=True)
class Module:
    """One source file: its dotted name, its text and its tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The part of the package it belongs to; empty for the package's own `__init__`."""
        return [*self.name.split("."), ""][1]

    @property
    def is_public(self) -> bool:
        """Whether no part of its name starts with an underscore."""
        return not any(part.startswith("_") for part in self.name.split("."))


@functools.cache
def modules() -> tuple[Module, ...]:
    """Return every module of the package, sorted by path."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = ("ricordo", *path.relative_to(PACKAGE).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name=name, path=path, text=text, tree=ast.parse(text)))
    return tuple(found)


def definitions(module: Module) -> Iterator[tuple[str, Definition]]:
    """Yield each function and class at any depth with its dotted name inside the module, outer ones first."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, Definition]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, Definition):
                yield f"{prefix}{child.name}", child
                yield from walk(child, f"{prefix}{child.name}.")
            else:
                yield from walk(child, prefix)

    yield from walk(module.tree, "")


def repository_files() -> list[Path]:
    """Return the files that git tracks or would track; empty outside a git checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
