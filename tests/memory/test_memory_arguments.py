"""Arguments of the public functions: what is clear is taken, and the rest is refused in a sentence."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

import ricordo.agent.sync
from agents_at_work import SCOPE, said
from ricordo import BuiltinTools, HarnessAgent, Memory, MemoryConfig, Scope
from ricordo.errors import InvalidInput, RicordoError
from ricordo.messages import Tokens
from ricordo.runtime import open_store
from ricordo.search import Query

pytestmark = pytest.mark.anyio

ODD: Any = object()


@pytest.fixture
async def memory(tmp_path: Path) -> Any:
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as opened:
        await opened.remember("We deploy only from main.", kind="decision", tags=["release"])
        await opened.remember("The server room is cold.", kind="fact")
        yield opened


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"kinds": "decision"}, 1),
        ({"kinds": ["decision", "fact"]}, 2),
        ({"kinds": {"fact"}}, 1),
        ({"kinds": "lesson"}, 0),
        ({"tags": "release"}, 1),
        ({"tags": ("release", "other")}, 1),
        ({"since": "2020-01-01"}, 2),
        ({"since": "2020-01-01T08:00:00+02:00", "until": "2021-01-01"}, 0),
        ({"since": date(2020, 1, 1)}, 2),
        ({"since": datetime(2020, 1, 1, tzinfo=UTC), "until": datetime(2099, 1, 1, tzinfo=UTC)}, 2),
        ({"budget": Tokens(500)}, 2),
        ({"budget": Tokens(1)}, 0),
    ],
    ids=repr,
)
async def test_what_a_filter_clearly_means_is_taken(memory: Memory, filters: dict[str, Any], found: int) -> None:
    assert len(await memory.recall("", **filters)) == found
    if "budget" not in filters:
        assert len(await memory.search(Query(text="", document_types="ledger", **filters))) == found  # type: ignore[arg-type]


@pytest.mark.parametrize("moment", ["2035-01-01", date(2035, 1, 1), "2035-01-01T08:00:00Z"])
async def test_a_moment_may_be_a_text_or_a_day_wherever_one_is_asked_for(memory: Memory, moment: Any) -> None:
    assert len(await memory.entries(as_of=moment)) == 2


_RECALL: dict[str, list[object]] = {
    "query": [None, 5, ["deploy"]],
    "limit": [0, -1, "5", 2.5, True, None],
    "kinds": [5, [5], None, [""], ["fact", None]],
    "tags": [5, [5], None],
    "since": ["yesterday-ish", "", 5, datetime(2020, 1, 1)],
    "until": ["2020-13-01", ODD, datetime(2020, 1, 1)],
    "budget": ["500", 500, 2.5, True, ODD],
}
_WRONG: dict[str, dict[str, list[object]]] = {
    "recall": _RECALL,
    "search": {"query": [None, 5, ["deploy"]], "limit": [0, "5", True, None]},
    "explain": {"query": [None, 5], "limit": [0, "5", None], "rejected": [-1, "1", None], "budget": ["500", 1.5]},
    "answer": {"question": [None, 5, ["deploy"]]},
    "preamble": {"budget": ["500", -1, True, ODD]},
    "preamble_cut": {"budget": ["500", -1, ODD]},
    "entries": {"as_of": ["soon", 5, datetime(2020, 1, 1)]},
    "entry": {"entry_id": [None, 5, "", "no such id"]},
    "remember": {
        "content": [None, 5, "", " "],
        "kind": [None, 5, ""],
        "tags": [None, 5, "release", [5]],
        "scope": ["alice", 5],
        "reason": [5],
        "rule": [5, "allow shell(*)"],
        "by": ["nobody", 5],
    },
    "forget": {"entry_id": [None, 5, "", "no such id"], "reason": [None, 5]},
    "undo": {"change_id": [5, "no such id"]},
    "diff": {"change_id": [5, "no such id"]},
    "history": {"limit": [0, "5", 2.5]},
    "background_runs": {"limit": [0, "5", None]},
    "pin": {"entry_id": [None, 5, "no such id"]},
    "confirm": {"entry_id": [None, 5, "no such id"]},
    "mark_used": {"entry_id": [None, 5, "no such id"], "how": [5]},
    "usage": {"entry_id": [None, 5, "no such id"]},
    "ingest": {"messages": [None, 5, "Hello.", [5]], "session": [None, 5, ""], "known": [5, "x"], "part_of": [5, None]},
    "session": {"session_id": [None, 5, "no such session"]},
    "drain": {"seconds": ["1", -1, None]},
    "embed": {"seconds": ["1", -1, None]},
}
_GIVEN: dict[str, dict[str, object]] = {
    "recall": {"query": "deploy"}, "search": {"query": "deploy"}, "explain": {"query": "deploy"},
    "remember": {"content": "Tea is served at four."}, "ingest": {"messages": [said("Hello.")], "session": "s"},
    "mark_used": {"entry_id": "no such id"}, "forget": {"entry_id": "no such id"},
}  # fmt: skip


@pytest.mark.parametrize("function", sorted(_WRONG))
async def test_an_argument_that_means_nothing_is_refused_in_a_sentence_and_changes_nothing(
    memory: Memory, function: str
) -> None:
    before = await memory.entries()
    for name, values in _WRONG[function].items():
        for value in values:
            with pytest.raises(RicordoError, match=r"\.$"):
                await getattr(memory, function)(**{**_GIVEN.get(function, {}), name: value})
    assert await memory.entries() == before


async def test_one_message_may_be_given_alone(memory: Memory) -> None:
    assert (await memory.ingest(said("Hello."), session="s")).added_count == 1  # type: ignore[arg-type]


@pytest.mark.req("HE-C5-required")
@pytest.mark.parametrize("part", ["tenant", "user", "team", "project", "agent", "session"])
@pytest.mark.parametrize("value", [42, b"alice", ["alice"], True, "", " "])
def test_a_part_of_a_scope_is_a_text(part: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=part):
        Scope(**{part: value})


@pytest.mark.req("HE-C5-required")
@pytest.mark.parametrize("scope", ["alice", 42, {"user": "alice"}])
async def test_what_is_no_scope_is_refused_wherever_memory_is_opened(tmp_path: Path, scope: Any) -> None:
    with pytest.raises(InvalidInput, match="Scope"):
        async with Memory.open(tmp_path, scope=scope):
            pass
    with pytest.raises(InvalidInput, match="Scope"):
        HarnessAgent("offline", scope=scope)
    with pytest.raises(InvalidInput, match="Scope"):
        async with open_store("ring:", scope=scope):
            pass
    assert not [path async for path in anyio.Path(tmp_path).iterdir()]


@pytest.mark.parametrize("given", [{"root": 5}, {"settings": "x"}, {"embedder": 5}, {"reranker": 5}])
async def test_what_no_memory_is_opened_with_is_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(RicordoError):
        async with Memory.open(**{"root": tmp_path / ".ricordo", "scope": SCOPE, **given}):
            pass
    with pytest.raises(RicordoError):
        async with open_store(5, scope=SCOPE):  # type: ignore[arg-type]
            pass


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("model", 5), ("model", None), ("memory", 5), ("session", 5), ("instructions", 5), ("tools", "x"),
        ("tools", None), ("tools", [5]), ("compaction", "classic"), ("tool_result_eviction", True),
        ("clear_results", {}), ("dedupe_reads", 5), ("truncate_args", "x"), ("settings", {}), ("builtin_tools", "x"),
    ],
)  # fmt: skip
def test_what_no_agent_is_described_by_is_refused(option: str, value: Any) -> None:
    for describe in (HarnessAgent, HarnessAgent.with_recommended_settings):
        with pytest.raises(InvalidInput):
            describe(**{"model": "offline", "scope": SCOPE, option: value})


@pytest.mark.parametrize(
    ("kind", "option", "value"),
    [
        (MemoryConfig, "root", 5), (MemoryConfig, "store", 5), (MemoryConfig, "hooks", 1),
        (MemoryConfig, "incognito", "no"), (MemoryConfig, "required", 1), (MemoryConfig, "flush", "always"),
        (MemoryConfig, "refresh", "turn"), (BuiltinTools, "memory", "no"), (BuiltinTools, "shell", None),
        (BuiltinTools, "sessions", "x"), (BuiltinTools, "files", 1), (BuiltinTools, "planning", "x"),
        (BuiltinTools, "working_directory", 5),
    ],
)  # fmt: skip
def test_what_no_group_of_arguments_holds_is_refused(kind: Any, option: str, value: Any) -> None:
    with pytest.raises(InvalidInput):
        kind(**{option: value})


@pytest.mark.may_block("the facade of programs that do not await")
def test_the_facade_of_programs_that_do_not_await_refuses_the_same(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput), ricordo.agent.sync.SyncMemory.open(tmp_path, scope="alice"):  # type: ignore[arg-type]
        pass
    with ricordo.agent.sync.SyncMemory.open(tmp_path / ".ricordo", scope=SCOPE) as opened:
        opened.remember("We deploy only from main.", kind="decision")
        assert len(opened.recall("deploy", kinds="decision", since="2020-01-01")) == 1
        with pytest.raises(InvalidInput):
            opened.recall("deploy", limit="5")  # type: ignore[arg-type]
