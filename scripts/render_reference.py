"""Render the reference pages from the code they describe, so that they cannot drift from it.

`python scripts/render_reference.py` writes the pages; a test fails while a page differs from what this module renders.
"""

import dataclasses
import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import typer.main

import ricordo
from ricordo import errors
from ricordo.agent import sync
from ricordo.cli.application import app
from ricordo.testing import BUILT_IN_STORES
from ricordo.testing.store_conformance import checks_table, conformance_table, list_capabilities, stores_table

__all__ = ["PAGES", "list_result_types", "main", "render_cli", "render_errors", "render_python", "render_stores"]

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
SOURCE = Path(ricordo.__file__).resolve().parent
NOTE = "<!-- Rendered by scripts/render_reference.py; `make format` renders it again. -->"


def render_cli() -> str:
    """Return the page of every command with its arguments and options, in the order of the help."""
    root: Any = typer.main.get_command(app)
    parts = [NOTE, "# Command line", _help(root), *_parameters(root)]
    for path, command in _commands(root, "ricordo"):
        parts += [f"## `{path}`", f"```text\n{_usage(path, command)}\n```", _help(command), *_parameters(command)]
    return _page(parts)


def render_errors() -> str:
    """Return the page of every error, as the tree in which they can be caught."""
    parts = [
        NOTE,
        "# Errors",
        "Catch `RicordoError` for everything, a branch for a kind of trouble, a leaf for one cause.",
    ]
    lines = [f"{'    ' * depth}- `{kind.__name__}`: {_summary(kind)}" for depth, kind in _tree(errors.RicordoError, 0)]
    return _page([*parts, "\n".join(lines)])


def render_python() -> str:
    """Return the page of the names that `import ricordo` offers, and of the types that their methods return."""
    parts = [
        NOTE,
        "# Python",
        "What `import ricordo` offers, and then the types of what its methods return. Everything else belongs to named"
        " rooms, such as `ricordo.messages`, or is internal and may change.",
    ]
    public = {name: getattr(ricordo, name) for name in ricordo.__all__ if not name.startswith("__")}
    for name, value in public.items():
        parts += _described(name, value)
    parts += ["# What the methods return"]
    for name, value in sorted(list_result_types(public).items()):
        parts += _described(name, value)
    parts += [
        "# Without `await`",
        "`ricordo.agent.sync` has these classes for programs that do not await. Each method has the arguments, results"
        " and errors of the method of the same name above.",
    ]
    for name in sync.__all__:
        value = getattr(sync, name)
        methods = ", ".join(f"`{each}`" for each in sorted(vars(value)) if not each.startswith("_"))
        parts += [f"## {name}", inspect.getdoc(value) or "", f"Methods: {methods}."]
    return _page(parts)


def list_result_types(public: Mapping[str, Any]) -> dict[str, type]:
    """Return the classes of Ricordo, by name, that public methods return, also as a part of what they return."""
    homes = {
        name: ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        for path in sorted(SOURCE.rglob("*.py"))
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    found: dict[str, type] = {}
    todo = [value for value in public.values() if inspect.isclass(value) or inspect.isfunction(value)]
    while todo:
        for name in _returned_names(todo.pop()):
            if name in homes and name not in found and name not in public:
                found[name] = getattr(importlib.import_module(homes[name]), name)
                todo.append(found[name])
    return found


def _returned_names(value: Any) -> set[str]:
    """Return the names in the annotations of the fields of a class, and of what its methods return."""
    if not inspect.isclass(value):
        return set(re.findall(r"\w+", str(inspect.signature(value).return_annotation)))
    annotations = [*vars(value).get("__annotations__", {}).values()] if dataclasses.is_dataclass(value) else []
    for name, member in vars(value).items():
        plain = getattr(member, "__func__", member.fget if isinstance(member, property) else member)
        if not name.startswith("_") and inspect.isfunction(plain):
            annotations.append(plain.__annotations__.get("return", ""))
    return {name for each in annotations for name in re.findall(r"\w+", each if isinstance(each, str) else repr(each))}


def render_stores() -> str:
    """Return the page of Ricordo's stores: what each declares and offers, and which checks it is held to."""
    parts = [
        NOTE,
        "# Stores",
        "Every store goes through the public conformance suite, `ricordo.testing.StoreConformance`, and so can "
        "[one of your own](../guide/stores.md). A check that does not apply to a store is left out, with a reason.",
        "## What they are",
        "`made for` is how many memories of one owner a store is measured up to, in [the benchmark of the stores]"
        "(../benchmarks/stores.md).",
        stores_table(BUILT_IN_STORES, anyio.run(_offers)),
        "## What they are held to",
        "I1 to I12 are the invariants of a store. `yes` means that all checks of an invariant apply, and pass.",
        conformance_table(BUILT_IN_STORES),
        "## The checks",
        checks_table(),
    ]
    return _page(parts)


async def _offers() -> dict[str, tuple[str, ...]]:
    with TemporaryDirectory() as folder:
        made = {scheme: Path(folder) / scheme for scheme in BUILT_IN_STORES}
        for path in made.values():
            path.mkdir()
        return {scheme: await list_capabilities(kind(), made[scheme]) for scheme, kind in BUILT_IN_STORES.items()}


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": render_cli,
    "errors.md": render_errors,
    "python.md": render_python,
    "stores.md": render_stores,
}


def main() -> None:
    """Write every page that differs from what the code says."""
    for name, render in PAGES.items():
        path, text = REFERENCE / name, render()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"rendered {path.name}")


def _page(parts: list[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in getattr(group, "commands", {}).items():
        if not command.hidden:
            if not hasattr(command, "commands") or command.invoke_without_command:
                yield f"{prefix} {name}", command
            yield from _commands(command, f"{prefix} {name}")


def _help(command: Any) -> str:
    return inspect.cleandoc(command.help or "")


def _usage(path: str, command: Any) -> str:
    shown = [_metavar(parameter) for parameter in command.params if parameter.param_type_name == "argument"]
    return " ".join([path, *shown, "[OPTIONS]"])


def _metavar(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    name = f"{name}..." if parameter.nargs == -1 else name
    return name if parameter.required else f"[{name}]"


def _parameters(command: Any) -> list[str]:
    rows = [_row(parameter) for parameter in command.params if not getattr(parameter, "hidden", False)]
    rows = [row for row in rows if "`--help`" not in row and "-completion" not in row]
    return ["\n".join(["| name | what it does |", "|---|---|", *rows])] if rows else []


def _row(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        label = f"`{_metavar(parameter)}`"
    else:
        label = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    text = " ".join((parameter.help or "").split())
    default = parameter.default
    if default not in (None, False, (), [], "") and not callable(default) and parameter.param_type_name == "option":
        text += f" (default: `{default}`)"
    return f"| {label} | {text} |".replace("\\|", "|")


def _tree(kind: type[BaseException], depth: int) -> Iterator[tuple[int, type[BaseException]]]:
    yield depth, kind
    for child in sorted(kind.__subclasses__(), key=lambda child: child.__name__):
        if child.__module__ == errors.__name__:
            yield from _tree(child, depth + 1)


def _summary(kind: type) -> str:
    return " ".join((inspect.getdoc(kind) or "").split())


def _described(name: str, value: Any) -> list[str]:
    parts = [f"## {name}", _signature(name, value), inspect.getdoc(value) or ""]
    if inspect.isclass(value) and not issubclass(value, BaseException):
        own = (each for each in value.__mro__ if each.__module__.startswith("ricordo"))
        for method in dict.fromkeys(name for each in own for name in vars(each)):
            member = getattr(value, method)
            if not method.startswith("_") and _is_documented_member(member):
                parts += [f"### {name}.{method}", _signature(method, member), inspect.getdoc(member) or ""]
    return parts


def _is_documented_member(member: object) -> bool:
    return inspect.isroutine(member) or isinstance(member, property)


def _signature(name: str, value: Any) -> str:
    """Return the call, or nothing for what is not called: properties, errors, and classes made by another call."""
    made_elsewhere = inspect.isclass(value) and (inspect.getdoc(value.__init__) or "").startswith("Use ")
    if isinstance(value, property) or made_elsewhere or (inspect.isclass(value) and issubclass(value, BaseException)):
        return ""
    try:
        signature = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    # Where a class is defined is an inner matter, of the standard library's too: it differs between its versions.
    signature = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", signature)
    # the name of a class that is loaded at its first use stands in quotes
    signature = re.sub(r"(: |-> |(?<!Literal)\[)'([^']*)'", r"\1\2", signature)
    signature = re.sub(r"frozenset\(\{(.*?)\}\)", _in_order, signature)
    return f"```text\n{name}{signature}\n```"


def _in_order(found: re.Match[str]) -> str:
    """A set is written in another order by each process."""
    return f"frozenset({{{', '.join(sorted(found[1].split(', ')))}}})"


if __name__ == "__main__":
    main()
