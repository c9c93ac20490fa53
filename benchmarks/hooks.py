"""Hooks: latency and processor time of each hook of a coding agent, beside bare Python, in one run.

    python benchmarks/hooks.py [--rounds 15] [--sizes 100,10000] [--out FOLDER]

Each hook is a process of its own, as a host starts it, in turn with its peers, so that a busy machine hits all alike.
`--sizes 100,10000,100000` takes a larger memory too. What prompts bring is measured with the prompts and memories in
`hook_prompts.json`; `--only-prompts` measures that alone, and keeps the other numbers, and `--only-others` the hooks of
the other hosts, with 100 memories. Numbers are kept in `hooks.json`
in FOLDER (docs/benchmarks), and the page `hosts.md` beside it is made of them.
"""

import argparse
import compileall
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

import anyio

import ricordo
from index_speed import SCOPE, begin, entries, write_ledgers
from retrieval_sets import Json
from ricordo import Memory
from ricordo.context.config import HooksConfig
from ricordo.hooks.answers import answer_event
from ricordo.hooks.contract import PROMPT, HookEvent
from ricordo.hooks.places import Place, make_place

__all__ = ["main"]

_BARE = "bare Python"
_RECALL = "ricordo recall"
_QUESTION = "Where does the service run?"
_SERVER = """
import os, sys
import anyio
from ricordo import Memory, Scope
from ricordo.hooks.places import make_place
from ricordo.hooks.server import serve_hooks
async def main():
    async with Memory.open(sys.argv[1], scope=Scope(user="me", project="benchmark"), embedder="none") as memory:
        await memory.recall("Where does the service run?")
        async with serve_hooks(memory, make_place(sys.argv[1], "me", os.environ)) as serves:
            print(serves, flush=True)
            await anyio.to_thread.run_sync(sys.stdin.read)
anyio.run(main)
"""
_Row: TypeAlias = tuple[str, str, str, str, float | None]
# each row of the table: the host, its event, who answers, and the most that it may take, as a multiple of its peer
_CLAUDE_ROWS: dict[str, _Row] = {
    "Stop": ("claude-code", "Stop", "", _BARE, 5.0),
    "SessionEnd": ("claude-code", "SessionEnd", "", _BARE, 5.0),
    "PreCompact": ("claude-code", "PreCompact", "", _BARE, 5.0),
    "SessionStart, a process answers": ("claude-code", "SessionStart", "server", _BARE, 8.0),
    "UserPromptSubmit, a process answers": ("claude-code", "UserPromptSubmit", "server", _BARE, 8.0),
    "SessionStart, prepared": ("claude-code", "SessionStart", "prepared", _BARE, 8.0),
    "SessionStart, the memory is opened": ("claude-code", "SessionStart", "process", _BARE, None),
    "UserPromptSubmit, the memory is opened": ("claude-code", "UserPromptSubmit", "process", _RECALL, 1.0),
}
# the same for the other hosts
_OTHER_ROWS: dict[str, _Row] = {
    "Gemini CLI, AfterAgent": ("gemini", "AfterAgent", "", _BARE, 5.0),
    "Gemini CLI, SessionEnd": ("gemini", "SessionEnd", "", _BARE, 5.0),
    "Gemini CLI, BeforeAgent, a process answers": ("gemini", "BeforeAgent", "server", _BARE, 8.0),
    "VS Code, Stop": ("vscode", "Stop", "", _BARE, 5.0),
    "VS Code, SessionStart, a process answers": ("vscode", "SessionStart", "server", _BARE, 8.0),
    "VS Code, SessionStart, prepared": ("vscode", "SessionStart", "prepared", _BARE, 8.0),
    "opencode, chat.message, a process answers": ("opencode", "chat.message", "server", _BARE, 8.0),
    "Cursor, sessionStart, a process answers": ("cursor", "sessionStart", "server", _BARE, 8.0),
    "Cursor, sessionStart, prepared": ("cursor", "sessionStart", "prepared", _BARE, 8.0),
}
_HEAD = """# Coding agents: what their hooks cost

Rendered by `python benchmarks/hooks.py` from the numbers in `hooks.json` beside it. A hook is a process that a coding
agent starts and waits for. *Latency* is the time from its start to its end, at the median and for the slowest of
twenty (p50, p95). *Processor time* is that of the whole process, user and system together, at the median, with the
ratio to its peer, which runs in turn with it: Python that does nothing (`python -c pass`), or `ricordo recall` with the
same question. A *limit* is the ratio that the project wants. Another process that answers is one that has the memory
open, as the MCP server of a session; its own time is not counted.

{rounds} rounds on {cores} cores with Python {python}; the load was {load:.2f} when this ended.
"""


def main() -> None:
    """Measure all hooks, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="how often each hook is started")
    parser.add_argument("--sizes", default="100,10000", help="how many memories the root holds, with commas")
    parser.add_argument("--only-prompts", action="store_true", help="measure only what prompts bring")
    parser.add_argument("--only-others", action="store_true", help="measure only the hooks of the other hosts")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent.parent / "docs" / "benchmarks")
    given = parser.parse_args()
    compileall.compile_dir(Path(ricordo.__file__).parent, quiet=1)
    kept = given.out / "hooks.json"
    before: Json = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    is_partial = given.only_prompts or given.only_others
    found: Json = before if is_partial else {**before, **_measure_sizes(given.sizes, given.rounds)}
    if not given.only_prompts:
        with tempfile.TemporaryDirectory(prefix="h", dir=os.environ.get("TMPDIR")) as folder:
            found["others"] = _measure(Path(folder), 100, given.rounds, _OTHER_ROWS)
            found["others_load"] = round(os.getloadavg()[0], 2)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RICORDO_DATA"] = str(Path(folder) / "data")
        found["prompts"] = anyio.run(_measure_prompts, Path(folder) / "project" / ".ricordo")
    print("\n".join(_list_prompts(found["prompts"])))
    given.out.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    (given.out / "hosts.md").write_text(_page(found), "utf-8")


def _measure_sizes(sizes: str, rounds: int) -> Json:
    found: dict[str, Json] = {}
    for size in sizes.split(","):
        with tempfile.TemporaryDirectory(prefix="h", dir=os.environ.get("TMPDIR")) as folder:
            found[size] = _measure(Path(folder), int(size), rounds, _CLAUDE_ROWS)
        print("\n".join(_table(found[size], _CLAUDE_ROWS)))
    return {
        "rounds": rounds, "cores": os.cpu_count(), "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(), "sizes": found,
    }  # fmt: skip


async def _measure_prompts(root: Path) -> Json:
    """Return how many prompts brought the memory that they are about, and how many brought one that they are not."""
    prompts = json.loads((Path(__file__).parent / "hook_prompts.json").read_text("utf-8"))
    place = make_place(str(root), "me", os.environ)
    counts = {"about": len(prompts["about"]), "about_nothing": len(prompts["about_nothing"])}
    counts |= {"brought": 0, "beside": 0, "false": 0}
    async with Memory.open(root, scope=SCOPE, embedder="none") as memory:
        ids = {entry.content: entry.id for entry in await memory.remember_many(prompts["memories"])}
        for number, (text, wanted) in enumerate(prompts["about"]):
            given = await _ask(memory, place, text, f"about {number}")
            counts["brought"] += ids[wanted] in given
            counts["beside"] += len(set(given) - {ids[wanted]})
        for number, text in enumerate(prompts["about_nothing"]):
            counts["false"] += bool(await _ask(memory, place, text, f"nothing {number}"))
    return counts


async def _ask(memory: Memory, place: Place, text: str, session: str) -> tuple[str, ...]:
    event = HookEvent(kind=PROMPT, host="claude-code", name="UserPromptSubmit", session=session, text=text)
    return (await answer_event(memory, place, event, config=HooksConfig())).entries


def _measure(folder: Path, count: int, rounds: int, rows: Mapping[str, _Row]) -> Json:
    """Return latencies and processor times of each row, in seconds; the first round only warms up."""
    places = {
        "HOME": str(folder / "home"), "RICORDO_DATA": str(folder / "data"), "XDG_RUNTIME_DIR": str(folder / "run"),
        "RICORDO_EMBEDDER": "none", "RICORDO_USER": "me",
    }  # fmt: skip
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RICORDO_", "PYTHONDONT"))}
    environment = kept | places
    os.environ.update(places)
    project = folder / "project"
    root = project / ".ricordo"
    anyio.run(_create_root, root, count)
    (project / "talk.jsonl").write_text("{}\n" * 1_000, "utf-8")
    times: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds + 1):
        times.setdefault(_BARE, []).append(_run(["-c", "pass"], b"", project, environment))
        times.setdefault(_RECALL, []).append(_run(["-m", "ricordo", "recall", _QUESTION], b"", project, environment))
        with _serve(root, project, environment):
            for name in (name for name, row in rows.items() if row[2] == "server"):
                times.setdefault(name, []).append(_run_row(name, rows[name], number, folder, environment))
        for name in (name for name, row in rows.items() if row[2] != "server"):
            times.setdefault(name, []).append(_run_row(name, rows[name], number, folder, environment))
    return {name: _summarize(each[1:]) for name, each in times.items()}


async def _create_root(root: Path, count: int) -> None:
    root.parent.mkdir(parents=True)
    folder = await begin(root)
    write_ledgers(folder, entries(count))
    async with Memory.open(root, scope=SCOPE, embedder="none") as memory:
        # the doctor waits until everything is indexed
        await memory.doctor()
        await memory.remember("The service runs in Frankfurt.")


@contextmanager
def _serve(root: Path, folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Let a process answer while the block runs."""
    command = [sys.executable, "-c", _SERVER, str(root)]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin
        assert server.stdout
        try:
            assert server.stdout.readline().strip() == "True"
            yield
        finally:
            server.stdin.close()
            server.wait(30)


def _run_row(name: str, row: _Row, number: int, folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    host, event, source, _, _ = row
    if source == "process":
        for prepared in folder.glob("data/hooks/prepared/*"):
            prepared.unlink()
    project = folder / "project"
    given = {
        "session_id": f"{name} {number}", "cwd": str(project), "transcript_path": str(project / "talk.jsonl"),
        "hook_event_name": event, "prompt": _QUESTION, "source": "startup", "conversation_id": f"{name} {number}",
        "workspace_roots": [str(project)],
    }  # fmt: skip
    elapsed = _run(["-m", "ricordo", "hook", host, event], json.dumps(given).encode(), project, environment)
    last = json.loads((folder / "data" / "hooks" / "log.jsonl").read_text("utf-8").splitlines()[-1])
    assert last["source"] == (source or "spool"), last
    return elapsed


def _run(arguments: Sequence[str], data: bytes, folder: Path, environment: Mapping[str, str]) -> tuple[float, float]:
    """Return the latency and the processor time of a process, in seconds. Raises: CalledProcessError if it fails."""
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, env=environment,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin
    process.stdin.write(data)
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, [*arguments])
    return elapsed, usage.ru_utime + usage.ru_stime


def _summarize(times: Sequence[tuple[float, float]]) -> Json:
    latencies = sorted(each for each, _ in times)
    return {
        "p50": statistics.median(latencies),
        "p95": latencies[min(len(latencies) - 1, round(0.95 * (len(latencies) - 1)))],
        "processor": statistics.median(each for _, each in times),
    }


def _table(found: Json, rows: Mapping[str, _Row]) -> list[str]:
    lines = [
        "| hook | p50 | p95 | processor time | ratio | limit |",
        "|---|---|---|---|---|---|",
    ]
    for name in (_BARE, _RECALL, *rows):
        row = found[name]
        peer, limit = rows[name][3:] if name in rows else (_BARE, None)
        ratio = row["processor"] / found[peer]["processor"]
        of = "" if peer == _BARE else f" of `{peer}`"
        wanted = "" if limit is None else f"{limit:g}"
        times = " | ".join(f"{1_000 * row[each]:,.0f} ms" for each in ("p50", "p95", "processor"))
        lines.append(f"| {name} | {times} | {ratio:.1f} ×{of} | {wanted} |")
    return lines


def _list_prompts(found: Json) -> list[str]:
    return [
        f"Of {found['about']} prompts about something that is remembered, {found['brought']} brought it, with "
        f"{found['beside']} other beside it. Of {found['about_nothing']} prompts about nothing that is "
        f"remembered, {found['false']} brought a memory.",
    ]


def _page(found: Json) -> str:
    lines = [_HEAD.format(**found)]
    for size, rows in found["sizes"].items():
        lines += [f"## {int(size):,} memories", "", *_table(rows, _CLAUDE_ROWS), ""]
    if "others" in found:
        load = f"The hooks of other hosts, with 100 memories; the load was {found['others_load']:.2f} when this ended."
        lines += ["## Other hosts", "", load, "", *_table(found["others"], _OTHER_ROWS), ""]
    lines += ["## What prompts bring", "", *_list_prompts(found["prompts"]), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
