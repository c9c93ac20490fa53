"""forget and memory in an agent: there only where they are named, each change told, asked for and taken back."""

import logging
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, settings, system
from command_line import ricordo
from desks import Person
from hand_made_roots import begun
from ricordo import Entry, HarnessAgent
from ricordo.agent import tool
from ricordo.errors import InvalidSetting
from ricordo.runtime import Settings, open_store
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem
from spawning import Spawning, spawn, tool_names
from three_methods import ThirdParty

BOTH = {"forget", "memory"}
WRONG = "The staging database runs on port 5433."
RIGHT = "Nadia owns staging."
NOTE = Call("memory", {"command": "create", "path": "/memories/release.md", "file_text": "1. Ask Nadia.\n"})


def agent(folder: Path, *script: ScriptItem, **options: object) -> tuple[HarnessAgent, ScriptedModel]:
    model = ScriptedModel(list(script) or [Say("Hello.")])
    given = {"settings": settings(folder / ".ricordo"), "scope": SCOPE, "closing_summary": "off"} | options
    return HarnessAgent(model, **agent_arguments(workspace=folder / ".ricordo", **given)), model


async def first_request(folder: Path, **options: object) -> RecordedRequest:
    """Return what an agent with these options asks its model first."""
    one, model = agent(folder, **options)
    async with one:
        await one.send("Hello.")
    return model.requests[0]


def told_of(request: RecordedRequest) -> set[str]:
    """Return those of both that the system prompt speaks of."""
    return {name for name in BOTH if f"- `{name}` " in system(request)}


def results(model: ScriptedModel) -> list[str]:
    return [each.text for message in model.requests[-1].messages for each in message.tool_results]


@pytest.mark.req("AS-CTX-01")
@pytest.mark.anyio
@pytest.mark.parametrize("way", ["argument", "config.toml", "environment"])
@pytest.mark.parametrize("names", [(), ("forget",), ("memory",), ("memory", "forget")])
async def test_those_that_are_named_are_there_and_the_prompt_tells_of_no_other(
    tmp_path: Path, way: str, names: tuple[str, ...]
) -> None:
    root = tmp_path / ".ricordo"
    begun(root, tmp_path / "data")
    if way == "config.toml":
        (root / "config.toml").write_text(f"opt_in_tools = {list(names)}\n")
    environment = {"RICORDO_CONSOLIDATION": "off", "RICORDO_DATA": str(tmp_path / "data")}
    environment |= {"RICORDO_OPT_IN_TOOLS": ",".join(names)} if way == "environment" else {}
    options: dict[str, object] = {"opt_in_tools": names} if way == "argument" else {}
    request = await first_request(tmp_path, settings=await run_sync(Settings.load, root, environment), **options)
    assert tool_names(request) & BOTH == {*names}
    assert told_of(request) == {*names}


@pytest.mark.anyio
async def test_an_argument_counts_before_the_settings(tmp_path: Path) -> None:
    given = replace(settings(tmp_path / ".ricordo"), opt_in_tools=("forget", "memory"))
    assert tool_names(await first_request(tmp_path, settings=given)) >= BOTH
    assert not tool_names(await first_request(tmp_path, settings=given, opt_in_tools=())) & BOTH
    assert not tool_names(await first_request(tmp_path, settings=given, memory_tools=False)) & BOTH
    assert not tool_names(await first_request(tmp_path, settings=given, store="none")) & BOTH


@pytest.mark.parametrize("given", ["forget", ["recall"], ["forget", "undo"], [1], 7])
def test_what_is_no_name_of_them_is_refused_in_words(tmp_path: Path, given: object) -> None:
    with pytest.raises(InvalidSetting, match=r"opt_in .*forget, memory"):
        agent(tmp_path, opt_in_tools=given)


def test_a_setting_that_names_another_tool_is_refused_with_where_it_stands(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"RICORDO_OPT_IN_TOOLS.*forget, memory, not recall"):
        Settings.load(None, {"RICORDO_OPT_IN_TOOLS": "memory,recall", "RICORDO_DATA": str(tmp_path)})


@pytest.mark.req("HE-O-audit-forget", "DF-C69")
@pytest.mark.anyio
@pytest.mark.parametrize("store", [None, "jsonl", "kv", "markdown", "sessions"])
async def test_a_memory_is_forgotten_when_a_person_says_yes_and_the_next_prompt_is_without_it(
    tmp_path: Path, store: str | None
) -> None:
    address = f"{store}:{tmp_path / 'kept'}" if store else f"layered:{tmp_path / '.ricordo'}"
    async with open_store(address, scope=SCOPE, settings=settings(tmp_path / ".ricordo")) as kept:
        wrong = await kept.save(Entry(content=WRONG, kind="preamble", by="user"))
        await kept.save(Entry(content=RIGHT, kind="preamble", by="user"))
    forget = Call("forget", {"entry_id": wrong.id[-8:], "why": "it moved"})
    for person, told in ((Person(False), "nothing was forgotten"), (Person(True), "forgotten: ")):
        one, model = agent(
            tmp_path, forget, Say("Done."), Say("Not known."), store=address if store else None,
            opt_in_tools=("forget",), approve=person,
        )  # fmt: skip
        async with one:
            await one.send("The port is wrong, forget it.")
            await one.send("Which port is it?")
        assert [asked.tool for asked in person.asked] == ["forget"]
        assert WRONG in person.asked[0].change
        assert told in results(model)[0]
        assert WRONG not in results(model)[0]
        assert WRONG in system(model.requests[0])
        assert (WRONG in system(model.requests[2])) is not person.answer
        assert RIGHT in system(model.requests[2])


@pytest.mark.anyio
async def test_without_anybody_to_ask_nothing_is_forgotten_unless_a_rule_lets_it(tmp_path: Path) -> None:
    async with open_store("jsonl:notes", scope=SCOPE, settings=settings(tmp_path / ".ricordo")) as kept:
        wrong = await kept.save(Entry(content=WRONG))
    forget = Call("forget", {"entry_id": wrong.id})
    for rules, left in (((), [WRONG]), (("deny forget",), [WRONG]), (("allow forget",), [])):
        one, model = agent(
            tmp_path, forget, Say("Done."), store="jsonl:notes", opt_in_tools=("forget",), permissions=rules
        )
        async with one:
            await one.send("Forget it.")
            assert [hit.entry.content for hit in await one.store.recall("")] == left, results(model)


@pytest.mark.req("CC-MEMTOOL", "FC-UNDO")
def test_what_the_model_notes_is_in_the_history_and_can_be_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    folder, file = Path.cwd(), Path(".ricordo/users/me/workspace/memories/release.md")
    monkeypatch.setenv("RICORDO_DATA", str(folder / "data"))
    more = Call("memory", {"command": "insert", "path": "/memories/release.md", "insert_line": 1, "insert_text": "2."})
    seen: list[str] = []

    async def noting() -> None:
        one, _ = agent(folder, NOTE, more, Say("Noted."), opt_in_tools=("memory",))
        async with one:
            await one.send("Note how we release.")
        two, model = agent(
            folder, Call("memory", {"command": "view", "path": "/memories/release.md"}), Say("."),
            opt_in_tools=("memory",),
        )  # fmt: skip
        async with two:
            await two.send("How do we release?")
        seen.extend(results(model))

    anyio.run(noting)
    assert "1\t1. Ask Nadia.\n     2\t2." in seen[0]
    before = file.read_text(encoding="utf-8")
    shown = ricordo("history").out
    assert "insert into /memories/release.md" in shown
    assert "create /memories/release.md" in shown
    assert ricordo("undo").code == 1, "without an id only what a person did is taken back"
    inserted, created = [change["id"] for change in ricordo("history", "--json").document["changes"][:2]]
    assert ricordo("undo", inserted).code == 0
    assert file.read_text(encoding="utf-8") == "1. Ask Nadia.\n" != before
    assert ricordo("undo", created).code == 0
    assert not file.exists()


@pytest.mark.anyio
async def test_a_store_that_can_not_forget_is_told_once_and_the_agent_runs_without_the_tool(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "ricordo.agent"):
        request = await first_request(
            tmp_path, store=ThirdParty.address.format(folder=tmp_path / "kept"), opt_in_tools=("forget", "memory")
        )
    assert tool_names(request) & BOTH == {"memory"}
    assert told_of(request) == {"memory"}
    assert [record.getMessage() for record in caplog.records] == [
        "The tool `forget` is not there: the store of this session lacks what it needs."
    ]


@pytest.mark.req("GO-G26-subagent")
@pytest.mark.anyio
async def test_a_sub_agent_has_them_only_by_their_names(tmp_path: Path) -> None:
    owns: list[dict[str, object]] = [{}, {"memory_tools": True}, {"tools": ("forget",)}, {"tools": ("memory",)}]
    for asked, options in (("on", {"opt_in_tools": ("forget", "memory")}), ("off", {"memory_tools": False})):
        found = []
        for number, own in enumerate(owns):
            worker = ScriptedModel([Say("Done.")])
            bench = Spawning(tmp_path / f"{asked}{number}", worker, {"Go.": spawn("Look.", agent="sub")})
            async with bench.agent(bench.researcher(name="sub", **own), **options) as one:
                await one.send("Go.")
                await one.tasks.wait()
            found.append(tool_names(worker.requests[0]) & BOTH)
        assert found == [set(), set(), {"forget"}, {"memory"}], asked


@pytest.mark.anyio
async def test_a_tool_of_the_program_that_is_called_so_is_the_one_there_is(tmp_path: Path) -> None:
    @tool
    def memory(megabytes: int) -> str:
        """Tell whether so much memory is free."""
        return f"{megabytes} are free"

    request = await first_request(tmp_path, tools=[memory], opt_in_tools=("memory", "forget"))
    assert [each.description for each in request.tools if each.name == "memory"] == [memory.spec.description]
    assert told_of(request) == {"forget"}
