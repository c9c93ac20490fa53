"""Imports each memory tool in a process of its own, uses it, and prints what came with it and what it told.

Run as a program with the names of the modules; a line of JSON for each: the rooms above the tools that came with
it, and what the tool told.
"""

import asyncio
import json
import os
import sys
from importlib import import_module

ABOVE = {"runtime", "cli", "testing", "adapters"}


def used(module: str) -> list[object]:
    """Import the module alone, then use its tool."""
    home = "memory_files" if module == "memory_files" else "memory"
    loaded = import_module(f"ricordo.agent.tools.{home}")
    names = {tuple(name.split(".")) for name in sys.modules if name.startswith("ricordo.")}
    above = ABOVE & {name[1] for name in names}
    above |= {".".join(name) for name in names if name[1] == "agent" and len(name) > 2 and name[2] != "tools"}
    return [sorted(above), asyncio.run(_told(getattr(loaded, f"{module}_tool"), module))]


async def _approve(request: object) -> bool:
    del request
    return True


async def _told(make: object, module: str) -> object:
    from memory_shelf import shelf
    from ricordo import Entry
    from ricordo.agent import ToolContext
    from ricordo.clock import MonotonicIds, SystemClock
    from ricordo.guard import Redactor
    from ricordo.scope import Scope
    from ricordo.testing import InMemoryFiles
    from ricordo.workspace import ChangeSets

    files, clock, store = InMemoryFiles(), SystemClock(), shelf()
    changes = ChangeSets(files, clock=clock, ids=MonotonicIds(clock))
    saved = await store.save(Entry(content="We deploy from main."))
    await files.create("workspace/MEMORY.md", b"- We deploy from main.\n")
    given: dict[str, tuple[tuple[object, ...], dict[str, object], dict[str, object]]] = {
        "remember": ((store,), {}, {"content": "a"}),
        "recall": ((store,), {}, {"query": "deploy"}),
        "memory_search": ((store,), {}, {"query": "deploy"}),
        "memory_get": ((files,), {}, {"path": "MEMORY.md"}),
        "forget": ((store,), {"approve": _approve}, {"entry_id": saved.id}),
        "memory_files": (
            (files, changes),
            {"redactor": Redactor(bytes(32))},
            {"command": "create", "path": "/memories/a.md", "file_text": "main"},
        ),
    }
    values, options, arguments = given[module]
    context = ToolContext(call_id="c", scope=Scope(project="shop"), agent="", session="")
    return await make(*values, **options)(arguments, context)  # type: ignore[operator]


def main() -> None:
    """Fork for each module, so that none comes with another."""
    answers = []
    for module in sys.argv[1:]:
        inside, outside = os.pipe()
        if not os.fork():
            os.write(outside, json.dumps(used(module)).encode())
            os._exit(0)
        os.close(outside)
        answers.append(inside)
    for inside in answers:
        with open(inside, encoding="utf-8") as answer:
            print(answer.read())
        os.wait()


if __name__ == "__main__":
    main()
