"""Wide results of an agent's tools, from the tool that gave them to the page that is read back."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from anyio.to_thread import run_sync

from agent_arguments import agent_arguments
from agents_at_work import SCOPE, is_valid, said, settings, spoken, transcript
from conversation_strategies import call, result
from hand_made_roots import begun
from places import place_of
from ricordo import CompactionConfig, HarnessAgent, ToolResultEvictionConfig
from ricordo.agent import Approval, tool
from ricordo.agent.tools.files import MAX_READ_CHARS
from ricordo.guard import Redactor
from ricordo.messages import Message, encode_message
from ricordo.storage.local import LocalFiles
from ricordo.testing import Call, RecordedRequest, Say, ScriptedModel, ScriptItem
from ricordo.workspace import FileStateStore

if TYPE_CHECKING:
    from ricordo.events import Event

pytestmark = pytest.mark.anyio

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
LINES = "".join(f"line {number} of what the tool found\n" for number in range(1_500))
ONE_LINE = '{"rows": [' + ", ".join(f'"row {number}"' for number in range(90_000)) + "]}"
SMALL = ToolResultEvictionConfig(max_result_chars=4_000, preview_chars=500)
_PATH = re.compile(r"All of it is in (/\S+)\. ")
_READ_ON = re.compile(r"Read on with offset=(\d+)(?:, character=(\d+))?\]\n")


@tool
def look_up(what: str) -> str:
    """Look something up."""
    return {"lines": LINES, "secret": f"token {SECRET}\n{LINES}", "line": ONE_LINE}.get(what, what)


def agent(model: ScriptedModel, root: Path, **options: object) -> HarnessAgent:
    given = {"session": "s", "settings": settings(root), "tools": [look_up], "tool_result_eviction": SMALL} | options
    return HarnessAgent(model, **agent_arguments(workspace=root, scope=SCOPE, **given))


def results(request: RecordedRequest) -> list[str]:
    """Return the texts of the results that a request holds, in order."""
    return [each.text for message in request.messages for each in message.tool_results]


def reading(what: str, *, calls: int = 99) -> Callable[[RecordedRequest], ScriptItem]:
    """Look something up, then read what was evicted from its beginning on, in at most so many calls."""

    def answered(request: RecordedRequest) -> ScriptItem:
        found = results(request)
        if not found:
            return Call("look_up", {"what": what})
        shown = _PATH.search(found[0])
        assert shown, "the first result was not evicted"
        if len(found) == 1:
            return Call("read_file", {"path": shown[1], "limit": 1_000_000}, "r0")
        more = _READ_ON.search(found[-1])
        if more is None or len(found) > calls:
            return Say("Read.")
        at = {"path": shown[1], "offset": int(more[1]), "character": int(more[2] or 0)}
        return Call("read_file", at, f"r{len(found)}")

    return answered


@pytest.mark.req("AS-EVICT-06", "AS-EVICT-03", "AS-BUG-11", "AS-EVICT-02", "AS-BUG-09")
async def test_the_path_that_is_shown_opens_the_whole_text_page_by_page(tmp_path: Path) -> None:
    model = ScriptedModel(reading("secret"))
    async with agent(model, tmp_path / "root", file_tools=True) as one:
        assert str(await one.send("Look.")) == "Read."
    first, *pages = results(model.requests[-1])
    assert len(first) < 2_000
    assert len(pages) > 2
    read = "".join(page.partition("\n")[2] for page in pages)
    (file,) = (place_of(tmp_path / "root") / "workspace" / "large_tool_results" / "s").iterdir()
    assert read == file.read_text()
    assert read.endswith(LINES)
    assert read.startswith("token ")
    assert SECRET not in read
    assert read == (await transcript(tmp_path / "root"))[2].tool_results[0].text, "the transcript has the same marks"


@pytest.mark.req("AS-BUG-09", "AS-EVICT-06")
@pytest.mark.parametrize("file_tools", [True, False], ids=["file tools", "no file tools"])
async def test_reading_one_line_of_a_megabyte_again_puts_no_more_than_a_page_back(
    tmp_path: Path, file_tools: bool
) -> None:
    assert len(ONE_LINE) > 1_000_000
    model = ScriptedModel(reading("line", calls=4))
    async with agent(model, tmp_path / "root", file_tools=file_tools) as one:
        await one.send("Look.")
    first, *pages = results(model.requests[-1])
    assert "JSON" in first
    assert "one line" in first
    assert len(pages) == 4
    read = "".join(page.partition("\n")[2] for page in pages)
    assert ONE_LINE.startswith(read)
    assert 3 * MAX_READ_CHARS < len(read) < len(ONE_LINE) // 2
    assert max(len(page) for page in pages) < MAX_READ_CHARS + 300
    (file,) = (place_of(tmp_path / "root") / "workspace" / "large_tool_results" / "s").iterdir()
    assert file.read_text() == ONE_LINE


@pytest.mark.req("AS-EVICT-05", "AS-EVICT-06")
async def test_the_output_of_a_command_of_a_hundred_thousand_characters_is_evicted_whole(tmp_path: Path) -> None:
    async def approve(approval: Approval) -> bool:
        return True

    command = "seq -w 0 1 12499 | sed s/^/n=/ | head -c 100000"
    model = ScriptedModel([Call("shell", {"command": command}), Say("Done.")])
    default = ToolResultEvictionConfig.defaults()
    async with agent(model, tmp_path / "root", shell=True, approve=approve, tool_result_eviction=default) as one:
        await one.send("Count.")
    (shown,) = results(model.requests[-1])
    assert len(shown) < 5_000
    (file,) = (place_of(tmp_path / "root") / "workspace" / "large_tool_results" / "s").iterdir()
    counted = "".join(f"n={number:05}\n" for number in range(12_500))
    assert len(counted) == 100_000
    assert file.read_text().startswith(counted)


@pytest.mark.req("AS-EVICT-07", "AS-COMPACT-15", "HE-C3-kinds")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_no_request_ever_holds_the_wide_text_with_every_other_reduction_off(
    tmp_path: Path, streamed: bool
) -> None:
    events: list[Event] = []
    script: list[ScriptItem] = [Call("look_up", {"what": "lines"}), Call("look_up", {"what": "short"}, "c2")]
    model = ScriptedModel([*script, Say("Done."), Say("Yes.")])
    async with agent(model, tmp_path / "root", on_event=events.append) as one:
        for asked in ("Look.", "And?"):
            if streamed:
                async with one.stream(asked) as heard:
                    assert [event async for event in heard]
            else:
                await one.send(asked)
    assert len(model.requests) == 4
    for request in model.requests:
        assert LINES[1_000:2_000] not in str(request.messages)
        assert all(len(text) < SMALL.max_result_chars for text in results(request))
    assert results(model.requests[-1])[1] == "short"
    told = [f"{event.stage} {event.status}" for event in events]
    assert told.index("tool finished") < told.index("evict finished")
    assert told[told.index("evict finished") :].index("model started") >= 0
    assert told[: told.index("evict finished")].count("model finished") == 1, "it was evicted before the next request"
    assert not {"compact", "truncate"} & {event.stage for event in events}


@pytest.mark.req("AS-EVICT-09", "AS-EVICT-02", "AS-EVICT-07")
async def test_request_and_state_hold_the_preview_and_all_else_as_it_was(tmp_path: Path) -> None:
    root = tmp_path / "root"
    given = [
        said("Run it."),
        replace(call("c1", "c2", name="bash"), metadata={"of": "the caller"}),
        replace(result("c1", LINES, is_error=True), metadata={"own": [1, 2]}),
        result("c2", "short"),
        said("And then?"),
    ]
    before = [encode_message(message) for message in given]
    model = ScriptedModel([Say("Done.")])
    async with agent(model, root) as one:
        recorded = await one.record(given)
        await one.send("Go on.")
        kept = one.window
    assert [encode_message(message) for message in given] == before
    assert recorded[2].tool_results[0].text == LINES, "what was in the window before is a message of its own"
    assert [message.id for message in recorded] == [message.id for message in (await transcript(root))[:5]]
    sent = [message for message in model.requests[0].messages if message.role != "system"]
    stated = await FileStateStore(LocalFiles(place_of(root)), Redactor(bytes(32))).load("main", "s")
    for window in (sent, kept, stated.state.window):
        assert is_valid(window)
        assert "is too long" in window[2].tool_results[0].text
        assert window[2].tool_results[0].is_error
        assert LINES[1_000:2_000] not in str(window)
        for now, then in zip(window, recorded, strict=False):
            assert (now.id, now.role, now.time, now.usage) == (then.id, then.role, then.time, then.usage)
            assert then.metadata.items() <= now.metadata.items()
        assert [message.parts for message in window[3:5]] == [message.parts for message in recorded[3:]]


@pytest.mark.req("AS-EVICT-11")
async def test_what_can_not_be_written_stays_and_what_only_looks_evicted_goes(tmp_path: Path) -> None:
    full, root = tmp_path / "full", tmp_path / "root"
    (place_of(begun(full, tmp_path / "data")) / "workspace").mkdir(parents=True)
    (place_of(full) / "workspace" / "large_tool_results").write_text("a file where the folder should be")
    events: list[Event] = []
    model = ScriptedModel([Call("look_up", {"what": "lines"}), Say("Done.")])
    async with agent(model, full, on_event=events.append) as one:
        assert str(await one.send("Look.")) == "Done."
    assert results(model.requests[-1]) == [LINES]
    stated = await FileStateStore(LocalFiles(place_of(full)), Redactor(bytes(32))).load("main", "s")
    assert (LINES in str_of(stated.state.window)) == (LINES in str_of(model.requests[-1].messages)) is True
    failed = [event for event in events if (event.stage, event.status) == ("evict", "failed")]
    assert failed
    assert all(event.error or event.reason for event in failed)

    model = ScriptedModel([Call("look_up", {"what": "lines"}), Say("Done.")])
    async with agent(model, root) as one:
        await one.send("Look.")
    (shown,) = results(model.requests[-1])
    genuine = shown + LINES.upper()
    model = ScriptedModel([Call("look_up", {"what": genuine}, "c2"), Say("Done.")])
    async with agent(model, root) as one:
        await one.send("Look again.")
    first, second = results(model.requests[-1])
    assert first == shown
    assert second != genuine
    assert len(second) < SMALL.max_result_chars
    files = (place_of(root) / "workspace" / "large_tool_results" / "s").iterdir()
    assert sorted(path.read_text() for path in files) == sorted([LINES, genuine])


def str_of(messages: tuple[Message, ...]) -> str:
    return "\n".join(text for _, text in spoken(messages))


@pytest.mark.req("AS-BUG-10", "AS-EVICT-07")
@pytest.mark.parametrize("evicting", [True, False])
async def test_one_huge_fresh_result_asks_for_no_summary_where_it_is_evicted(tmp_path: Path, evicting: bool) -> None:
    events: list[Event] = []
    summary = "## SESSION INTENT\nTalk.\n## SUMMARY\nTalked.\n## ARTIFACTS\nNone\n## NEXT STEPS\nNone"

    def answered(request: RecordedRequest) -> ScriptItem:
        if not request.tools:
            return Say(summary)
        last = request.messages[-1]
        return Call("look_up", {"what": "lines"}) if "Look." in last.text else Say("Done with it. " * 400)

    model = ScriptedModel(answered)
    config = CompactionConfig(trigger_messages=0, trigger_tokens=12_000, keep_messages=2)
    eviction = SMALL if evicting else None
    async with agent(
        model, tmp_path / "root", compaction=config, tool_result_eviction=eviction, on_event=events.append
    ) as one:
        for number in range(6):
            await one.send(f"Number {number}.")
        await one.send("Look.")
    asked = [request for request in model.requests if not request.tools]
    done = [event for event in events if (event.stage, event.status) == ("compact", "finished")]
    if evicting:
        assert (asked, done) == ([], [])
    else:
        assert asked or done, "without eviction the same result makes a summary due"


@pytest.mark.req("AS-BUG-31")
async def test_what_no_window_shows_any_more_is_gone_when_the_root_was_closed_days_later(tmp_path: Path) -> None:
    root = tmp_path / "root"
    folder = place_of(root) / "workspace" / "large_tool_results" / "s"
    async with agent(ScriptedModel([Call("look_up", {"what": "lines"}), Say("Done.")]), root) as one:
        await one.send("Look.")
    await run_sync(_age, root)
    async with agent(ScriptedModel([]), root, session="other"):
        pass
    assert len(list(folder.iterdir())) == 1, "the window of the session still shows it"
    async with agent(ScriptedModel([]), root) as one:
        await one.clear()
    await run_sync(_age, root)
    async with agent(ScriptedModel([]), root, session="other"):
        pass
    assert list(folder.iterdir()) == []
    assert (await transcript(root))[2].tool_results[0].text == LINES


def _age(root: Path) -> None:
    then = time.time() - 3 * 24 * 60 * 60
    for path in root.rglob("*"):
        os.utime(path, (then, then))


@pytest.mark.req("AS-EVICT-06")
async def test_an_evicted_result_is_found_by_the_tools_that_search_files(tmp_path: Path) -> None:
    def answered(request: RecordedRequest) -> ScriptItem:
        found = results(request)
        calls = [
            Call("look_up", {"what": "line"}),
            Call("grep_files", {"pattern": "row 77077", "path": "/large_tool_results"}, "c2"),
        ]
        return calls[len(found)] if len(found) < len(calls) else Say("Done.")

    model = ScriptedModel(answered)
    async with agent(model, tmp_path / "root", file_tools=True) as one:
        await one.send("Look.")
    shown, found = results(model.requests[-1])
    path = _PATH.search(shown)
    assert path
    assert f"{path[1]}:1:" in found
    assert "row 77077" in found
    assert len(found) < 1_000
