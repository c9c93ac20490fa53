"""Wide tool results go to files: what stays, what is found again, and what a full or failing disk leaves."""

import base64
import errno
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from conversation_strategies import call, result, said
from disks import FailingDisk, KillingDisk, StepDisk
from ricordo.context import EvictResults, Reduction, ToolResultEvictionConfig, Window
from ricordo.context.config import DEFAULT_EXCLUDED_TOOLS
from ricordo.errors import StorageFull
from ricordo.guard import Redactor
from ricordo.messages import Media, Message, Text, ToolResult, Unknown, decode_message, encode_message, with_ids
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles

pytestmark = pytest.mark.anyio

KEY = Redactor(bytes(range(32)))
LIMIT = 80_000
WIDE = "".join(f"line {number} of the output\n" for number in range(5_000))[: LIMIT + 1]


def asked(tool: str, text: str, *, call_id: str = "c1") -> tuple[Message, ...]:
    messages = [said("Run it."), call(call_id, name=tool), result(call_id, text)]
    return tuple(with_ids(messages, session="s1"))


async def evicted(
    messages: tuple[Message, ...],
    files: InMemoryFiles | LocalFiles | None = None,
    config: ToolResultEvictionConfig | None = None,
    *,
    forced: str = "",
) -> Reduction:
    evict = EvictResults(config or ToolResultEvictionConfig.defaults(), files or InMemoryFiles(), KEY)
    return await evict.reduce(Window(messages=messages, agent="main", session="s1", forced=forced))


@pytest.mark.req("AS-EVICT-01", "AS-EVICT-08")
async def test_a_result_of_the_limit_stays_and_one_character_more_goes_to_a_file() -> None:
    files = InMemoryFiles()
    at_limit = asked("bash", WIDE[:-1])
    stays = await evicted(at_limit, files)
    assert stays.messages == at_limit
    assert await files.list() == []
    goes = await evicted(asked("bash", WIDE), files)
    (file,) = await files.list()
    assert (await files.read(file.path)).data.decode() == WIDE
    assert len(goes.messages[-1].tool_results[0].text) < 5_000
    assert goes.report.status == "done"
    assert goes.report.tokens_after < goes.report.tokens_before
    # nor does a part of a kind that nobody knows stay
    for raw, stay in ((WIDE[:-1], True), (WIDE, False)):
        other = replace(at_limit[-1].tool_results[0], parts=(Unknown(kind="of:tomorrow", raw=raw),))
        messages = (*at_limit[:-1], replace(at_limit[-1], parts=(other,)))
        assert ((await evicted(messages)).messages == messages) == stay


@pytest.mark.req("AS-EVICT-02", "AS-EVICT-08")
async def test_the_placeholder_shows_both_ends_the_path_and_the_tool_that_reads_it() -> None:
    files = InMemoryFiles()
    shown = (await evicted(asked("bash", WIDE), files)).messages[-1].tool_results[0].text
    (file,) = await files.list()
    path = file.path.removeprefix("workspace")
    assert path.startswith("/large_tool_results/s1/bash-")
    for part in (WIDE[:2_000], WIDE[-2_000:], path, "read_file", f"{len(WIDE):,} characters", "lines"):
        assert part in shown
    assert WIDE[:2_001] not in shown
    assert WIDE[-2_001:] not in shown


@pytest.mark.req("AS-EVICT-03", "AS-EVICT-02")
async def test_another_folder_of_the_workspace_can_be_set() -> None:
    files = InMemoryFiles()
    await evicted(asked("bash", WIDE), files)
    config = ToolResultEvictionConfig(eviction_path="/kept/wide/")
    moved = await evicted(asked("bash", WIDE), files, config)
    paths = [file.path for file in await files.list()]
    assert [path.rpartition("/")[0] for path in paths] == [
        "workspace/kept/wide/s1",
        "workspace/large_tool_results/s1",
    ]
    assert "/kept/wide/s1/bash-" in moved.messages[-1].tool_results[0].text


@pytest.mark.req("AS-EVICT-04")
@pytest.mark.parametrize("named_by", ["the result", "the call"])
async def test_tools_that_bound_their_answers_are_left_alone_unless_the_set_is_replaced(named_by: str) -> None:
    names = ["read_file", "write_file", "edit_file", "grep_files", "glob_files", "list_files"]
    assert {*names, "session_search", "memory_*", "plan_read", "read_result"} == DEFAULT_EXCLUDED_TOOLS
    for name in [*names, "session_search", "memory_search", "memory_get", "memory_anything"]:
        messages = asked(name, WIDE)
        if named_by == "the result":
            told = replace(messages[-1].tool_results[0], name=name)
            messages = (messages[0], replace(messages[-1], parts=(told,)))
        assert (await evicted(messages)).messages == messages
        replaced = ToolResultEvictionConfig(excluded_tool_names=frozenset({"bash"}))
        assert (await evicted(messages, config=replaced)).messages != messages
    for name in ["memory", "my_read_file", "bash"]:
        assert (await evicted(asked(name, WIDE))).report.status == "done"


@pytest.mark.req("AS-EVICT-05", "AS-EVICT-08", "AS-EVICT-01")
async def test_output_of_the_shell_is_evicted_by_default() -> None:
    assert not {"shell", "bash", "execute", "shell_execute"} & DEFAULT_EXCLUDED_TOOLS
    for name in ("bash", "shell", "execute", "shell_execute"):
        found = await evicted(asked(name, "x" * 100_000))
        assert found.report.status == "done"
        assert len(found.messages[-1].tool_results[0].text) < 10_000


@pytest.mark.req("AS-EVICT-10", "AS-BUG-create-only", "AS-BUG-11")
async def test_files_are_named_by_content_so_once_is_enough_and_a_reused_id_takes_nothing_away() -> None:
    files = InMemoryFiles()
    first = await evicted(asked("bash", WIDE, call_id="call_0"), files)
    again = await evicted(asked("bash", WIDE, call_id="call_0"), files)
    assert again.messages == first.messages
    assert len(await files.list()) == 1
    # only the ends differ
    other, last = f"{WIDE[:-5]}OTHER", f"{WIDE[:-4]}LAST"
    second = await evicted((*first.messages, *asked("bash", other, call_id="call_0")), files)
    assert second.messages[:3] == first.messages
    third = await evicted((*second.messages, *asked("bash", last, call_id="call_0")), files)
    assert third.messages[:6] == second.messages
    contents = {(await files.read(file.path)).data.decode() for file in await files.list()}
    assert contents == {WIDE, other, last}
    for text, message in zip((WIDE, other, last), third.messages[2::3], strict=True):
        path = path_in(message)
        assert (await files.read(f"workspace{path}")).data.decode() == text
        assert path in message.tool_results[0].text


@pytest.mark.req("AS-EVICT-02")
@pytest.mark.parametrize("preview", [0, 150, 5_000])
async def test_as_many_characters_of_each_end_are_shown_as_are_asked_for(preview: int) -> None:
    config = ToolResultEvictionConfig(preview_chars=preview)
    found = await evicted(asked("bash", WIDE), config=config)
    (head, tail) = found.messages[-1].tool_results[0].text.partition("Its beginning and end:]\n")[2].split("\n[... ")
    assert head == WIDE[:preview]
    assert tail.partition(" ...]\n")[2] == WIDE[len(WIDE) - preview :]


@pytest.mark.req("AS-EVICT-11", "AS-EVICT-02")
async def test_what_only_looks_like_a_placeholder_is_evicted_and_a_real_one_never_again() -> None:
    files = InMemoryFiles()
    config = ToolResultEvictionConfig(max_result_chars=300, preview_chars=100)
    shown = (await evicted(asked("bash", WIDE), files, config)).messages
    text = shown[-1].tool_results[0].text
    assert len(text) > config.max_result_chars
    assert (await evicted(shown, files, config)).messages == shown
    reloaded = tuple(decode_message(encode_message(message)) for message in shown)
    assert (await evicted(reloaded, files, config)).messages == reloaded
    fake = asked("bash", text)
    assert (await evicted(fake, files, config)).messages != fake


@pytest.mark.req("AS-EVICT-09", "AS-BUG-11", "AS-EVICT-02", "AS-EVICT-06")
async def test_everything_but_the_text_of_a_wide_result_stays() -> None:
    picture = Media(media_type="image/png", uri="https://example.org/a.png", description="a chart")
    text = WIDE.replace("\n", "\r\n")
    wide = ToolResult(call_id="c1", name="bash", is_error=True, parts=(Text(text=text), picture, Text(text="and more")))
    small = ToolResult(call_id="c2", name="bash", parts=(Text(text="small"),))
    message = Message(role="tool", parts=(small, wide), id="m3", metadata={"own": 1})
    before = encode_message(message)
    files = InMemoryFiles()
    found = await evicted((call("c1", "c2"), message), files)
    assert encode_message(message) == before
    new = found.messages[1]
    assert (new.id, new.role, new.metadata["own"], new.parts[0]) == ("m3", "tool", 1, small)
    kept = new.tool_results[1]
    assert (kept.call_id, kept.name, kept.is_error, kept.parts[1]) == ("c1", "bash", True, picture)
    assert (await files.read(f"workspace{path_in(new)}")).data.decode() == f"{text}\nand more"


@pytest.mark.req("AS-EVICT-09")
async def test_a_message_of_which_more_is_evicted_later_stays_as_it_was_for_whoever_holds_it() -> None:
    results = tuple(
        ToolResult(call_id=each, name="bash", parts=(Text(text=text),))
        for each, text in (("c1", WIDE), ("c2", "b" * 900))
    )
    files = InMemoryFiles()
    first = (await evicted((call("c1", "c2"), Message(role="tool", parts=results, id="m3")), files)).messages
    before = encode_message(first[1])
    again = (await evicted(first, files, ToolResultEvictionConfig(max_result_chars=500, preview_chars=100))).messages
    assert encode_message(first[1]) == before
    assert "is too long" in again[1].tool_results[1].text
    assert again[1].tool_results[0] == first[1].tool_results[0]


@pytest.mark.req("FC-SECRET", "AS-EVICT-06")
async def test_no_secret_of_a_wide_result_reaches_the_file_or_the_preview() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    files = InMemoryFiles()
    found = await evicted(asked("bash", f"token {secret}\n{WIDE}"), files)
    (file,) = await files.list()
    stored = (await files.read(file.path)).data.decode()
    assert secret not in stored
    assert secret not in found.messages[-1].tool_results[0].text
    assert stored == KEY.clean(f"token {secret}\n{WIDE}")


@pytest.mark.req("AS-BUG-11")
async def test_a_picture_stays_until_a_model_has_seen_it() -> None:
    data = bytes(range(256)) * 400
    uri = "data:image/png;base64," + base64.b64encode(data).decode()
    shown = Message(role="tool", parts=(ToolResult(call_id="c1", parts=(Media(media_type="image/png", uri=uri),)),))
    fresh = tuple(with_ids([said("Take a picture."), call("c1", name="camera"), shown], session="s1"))
    assert (await evicted(fresh)).messages == fresh
    files = InMemoryFiles()
    found = await evicted((*fresh, said("A cat.", role="assistant", id="m9")), files)
    (file,) = await files.list()
    assert file.path.endswith(".png")
    assert (await files.read(file.path)).data == data
    assert file.path.removeprefix("workspace") in found.messages[2].tool_results[0].text


@pytest.mark.req("AS-BUG-11", "AS-EVICT-02")
async def test_a_picture_beside_a_wide_text_stays_until_it_was_seen_and_then_goes_to_a_file_of_its_own() -> None:
    data = bytes(range(256)) * 400
    picture = Media(media_type="image/png", uri="data:image/png;base64," + base64.b64encode(data).decode())
    rows = json.dumps([{"row": number, "text": "x" * 9} for number in range(4_000)])
    both = Message(role="tool", parts=(ToolResult(call_id="c1", parts=(Text(text=rows), picture)),))
    files = InMemoryFiles()
    first = (await evicted(tuple(with_ids([call("c1", name="shot"), both], session="s1")), files)).messages
    text, kept = first[1].tool_results[0].parts
    assert isinstance(text, Text)
    assert kept == picture
    assert "JSON" in text.text
    assert "one line" in text.text
    spoken = (*first, said("A chart.", role="assistant", id="m9"))
    then = (await evicted(spoken, files)).messages[1].tool_results[0].parts
    assert then[0] == text
    assert isinstance(then[1], Text)
    assert "image/png" in then[1].text
    assert {(await files.read(file.path)).data for file in await files.list()} == {data, rows.encode()}
    assert (await evicted((await evicted(spoken, files)).messages, files)).report.status == "skipped"


@pytest.mark.req("AS-BUG-11", "AS-EVICT-02")
async def test_a_medium_that_is_text_is_evicted_at_once_and_without_secrets() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    uri = "data:text/csv;base64," + base64.b64encode(f"{secret}\n{WIDE}".encode()).decode()
    shown = Message(role="tool", parts=(ToolResult(call_id="c1", parts=(Media(media_type="text/csv", uri=uri),)),))
    files = InMemoryFiles()
    await evicted((call("c1", name="fetch"), shown), files)
    (file,) = await files.list()
    stored = (await files.read(file.path)).data.decode()
    assert secret not in stored
    assert WIDE in stored


@pytest.mark.req("AS-EVICT-01", "AS-BUG-06", "AS-EVICT-02")
async def test_a_forced_window_evicts_smaller_results_too_and_shows_as_much_of_them() -> None:
    messages = asked("bash", WIDE[:20_000])
    assert (await evicted(messages)).messages == messages
    found = await evicted(messages, forced="overflow")
    assert found.report.status == "done"
    shown = found.messages[-1].tool_results[0].text
    assert (WIDE[:2_000] in shown, WIDE[18_000:20_000] in shown) == (True, True)
    assert (WIDE[:2_001] in shown, WIDE[17_999:20_000] in shown) == (False, False)


@pytest.mark.req("AS-EVICT-10", "AS-BUG-11")
async def test_a_file_that_somebody_changed_is_neither_overwritten_nor_trusted() -> None:
    files = InMemoryFiles()
    first = await evicted(asked("bash", WIDE), files)
    path = f"workspace{path_in(first.messages[-1])}"
    await files.replace(path, b"edited", expected=(await files.read(path)).version)
    second = await evicted(asked("bash", WIDE), files)
    assert (await files.read(path)).data == b"edited"
    assert (await files.read(f"workspace{path_in(second.messages[-1])}")).data.decode() == WIDE


@pytest.mark.req("AS-EVICT-11")
@pytest.mark.may_block("the disk of the test")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
async def test_a_disk_that_fails_leaves_the_result_where_it_was_and_the_next_try_succeeds(
    tmp_path: Path, code: int
) -> None:
    steps = await count_steps(tmp_path / "counted")
    assert steps > 3
    messages = asked("bash", WIDE)
    for at in range(1, steps + 1):
        root = tmp_path / str(at)
        found = await evicted(messages, LocalFiles(root, disk=FailingDisk(at, code)))
        if found.report.status == "failed":
            assert found.messages == messages
            assert found.report.reason
        else:
            assert found.messages != messages
        assert (await evicted(messages, LocalFiles(root))).report.status == "done"
        assert contents(root) == {WIDE}


@pytest.mark.req("AS-EVICT-11")
async def test_one_result_that_can_not_be_written_keeps_no_other_one_in_the_window() -> None:
    class Picky(InMemoryFiles):
        async def create(self, path: str, data: bytes) -> str:
            if b"bad" in data:
                raise StorageFull
            return await super().create(path, data)

    messages = (*asked("bash", WIDE), *asked("bash", WIDE + "bad", call_id="c2"))
    found = await evicted(messages, Picky())
    assert found.messages[2] != messages[2]
    assert found.messages[5] == messages[5]
    assert found.report.status == "failed"


@pytest.mark.req("AS-EVICT-10", "AS-BUG-11")
@pytest.mark.may_block("the test forks")
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_kill_at_any_step_leaves_a_whole_file_or_none_and_the_window_untouched(tmp_path: Path) -> None:
    messages = asked("bash", WIDE)
    window = [encode_message(message).decode() for message in messages]
    steps = anyio.run(count_steps, tmp_path / "counted")
    for at in range(1, steps + 2):
        root = tmp_path / str(at)
        child = os.fork()
        if child == 0:
            anyio.run(evicted, messages, LocalFiles(root, disk=KillingDisk(at, halves=True)))
            os._exit(0)
        os.waitpid(child, 0)
        assert contents(root) <= {WIDE}
        found = anyio.run(evicted, tuple(decode_message(line.encode()) for line in window), LocalFiles(root))
        assert found.report.status == "done"
        assert contents(root) == {WIDE}


async def count_steps(root: Path) -> int:
    disk = StepDisk(lambda step: None, halves=True)
    assert (await evicted(asked("bash", WIDE), LocalFiles(root, disk=disk))).report.status == "done"
    return len(disk.steps)


def contents(root: Path) -> set[str]:
    return {path.read_text() for path in root.glob("workspace/large_tool_results/s1/*.txt")}


def path_in(message: Message) -> str:
    (record,) = json.loads(encode_message(message))["metadata"]["ricordo.evicted"]
    return str(record["path"])
