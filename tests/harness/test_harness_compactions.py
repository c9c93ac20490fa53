"""The journal of compactions: what went can be opened, the window comes back, and nothing is lost to a torn line."""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kept_sessions import JOURNAL, REDACTOR, TRANSCRIPT, Kept, said
from message_strategies import messages as any_messages
from ricordo.agent import SessionState
from ricordo.agent.compaction_journal import (
    Compaction,
    CompactionRecord,
    MessageReference,
    parse_journal,
    render_record,
    render_undo,
)
from ricordo.errors import CompactionNotFound, MessageNotFound, StorageError, StorageFull, UndoRefused
from ricordo.messages import Message, Text, is_pinned
from ricordo.testing import InMemoryFiles
from ricordo.workspace import AgentState, FileStateStore, read_transcript, state_path

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-UNDO")]


@pytest.fixture
async def kept() -> Kept:
    return await Kept().open()


@pytest.mark.req("AS-BUG-11", "AS-COMPACT-06")
async def test_a_compaction_is_on_record_and_opens_what_it_took_away(kept: Kept) -> None:
    await kept.say("one", "two", "three", "four")
    before = kept.window
    handle = await kept.compact(3)
    (made,) = await kept.compactions.all()
    assert (made.handle, made.action, made.reason, made.is_undone) == (handle, "compact", "asked", False)
    assert (made.first_id, made.last, made.messages) == (before[0].id, before[2].id, 3)
    assert (made.tokens_before, made.tokens_after) == (90, 9)
    opened = await kept.compactions.expand(handle)
    assert [message.text for message in opened] == ["one", "two", "three"]
    assert (opened.messages, opened.missing) == ((await read_transcript(kept.files, TRANSCRIPT)).messages[:3], 0)


@pytest.mark.req("AS-BUG-11", "CC-CLEAR")
async def test_what_was_shortened_before_it_went_is_opened_whole(kept: Kept) -> None:
    await kept.say("a very long text", "two", "three")
    shortened = replace(kept.window[0], parts=(Text(text="a very [...]"),))
    kept.keeper.replace_window((shortened, *kept.window[1:]))
    handle = await kept.compact(2)
    opened = await kept.compactions.expand(handle)
    assert [message.text for message in opened] == ["a very long text", "two"]
    await kept.compactions.undo()
    assert kept.window[0] == shortened, "the window is what it was, which was shorter"
    assert (await kept.compactions.expand(f"m:{shortened.id}"))[0].text == "a very long text"


@pytest.mark.parametrize("again", [False, True])
async def test_undo_restores_the_window_and_keeps_what_came_since(kept: Kept, again: bool) -> None:
    await kept.say("one", "two", "three", "four")
    before = kept.window
    handle = await kept.compact(3)
    await kept.say("five")
    (later,) = kept.window[-1:]
    if again:
        await kept.keeper.save()
        await kept.open()
    made = await kept.compactions.undo()
    assert (made.handle, made.is_undone) == (handle, True)
    assert kept.window == (*before, later)
    assert kept.keeper.state.messages_at_undo == 5
    stored = (await FileStateStore(kept.files, REDACTOR).load("main", "s")).state
    assert (stored.window, stored.messages_at_undo) == (kept.window, 5)
    assert (await kept.compactions.all())[0].is_undone
    await kept.compact(2)
    assert kept.keeper.state.messages_at_undo == 0, "the next compaction begins anew"


@pytest.mark.req("AS-STATE-01")
async def test_the_window_of_another_process_comes_back_as_it_was(kept: Kept) -> None:
    await kept.say("one", "two", "three", "four")
    await kept.keeper.save()
    await kept.open()
    before = kept.window
    handle = await kept.compact(3)
    lines = (await kept.files.read(JOURNAL)).data.splitlines()
    assert len(lines) == 1
    assert b"three" not in lines[0], "what the transcript has is not written again"
    await kept.open()
    await kept.compactions.undo(handle)
    assert kept.window == before


async def test_one_that_a_later_one_builds_on_is_undone_after_it(kept: Kept) -> None:
    await kept.say(*"abcdef")
    before = kept.window
    first = await kept.compact(2)
    second = await kept.compact(3, summary="More was said.")
    opened = await kept.compactions.expand(second)
    assert [message.text for message in opened] == ["What was said.", "c", "d"], "a summary is given as the summary"
    with pytest.raises(UndoRefused, match=second):
        await kept.compactions.undo(first)
    assert (await kept.compactions.undo()).handle == second
    assert (await kept.compactions.undo()).handle == first
    assert kept.window == before
    with pytest.raises(UndoRefused, match="already"):
        await kept.compactions.undo(first)
    with pytest.raises(CompactionNotFound, match="undone already"):
        await kept.compactions.undo()


async def test_one_that_is_made_again_is_the_newest_and_can_be_undone_again(kept: Kept) -> None:
    await kept.say(*"abcd")
    before = kept.window
    handle = await kept.compact(2)
    await kept.compactions.undo()
    assert await kept.compact(2) == handle
    assert [made.is_undone for made in await kept.compactions.all()] == [False]
    await kept.compactions.undo()
    assert kept.window == before


async def test_an_emptied_window_is_not_filled_again(kept: Kept) -> None:
    await kept.say(*"abcd")
    await kept.compact(2)
    kept.keeper.replace_window(())
    with pytest.raises(UndoRefused, match="emptied"):
        await kept.compactions.undo()
    assert kept.window == ()


async def test_a_torn_line_hides_no_other_compaction(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    await kept.say(*"abcdef")
    first = await kept.compact(2)
    second = await kept.compact(3)
    stored = await kept.files.read(JOURNAL)
    one, two = stored.data.splitlines()
    await kept.files.replace(JOURNAL, one + b"\n" + two[:40], expected=stored.version)
    with caplog.at_level(logging.WARNING):
        assert [made.handle for made in await kept.compactions.all()] == [first]
        await kept.compactions.all()
    assert len([record for record in caplog.records if "can't be read" in record.message]) == 1
    with pytest.raises(CompactionNotFound, match="--list"):
        await kept.compactions.expand(second)


async def test_a_lost_journal_can_not_be_undone_and_breaks_nothing(kept: Kept) -> None:
    await kept.say(*"abcd")
    handle = await kept.compact(2)
    window = kept.window
    await kept.files.delete(JOURNAL)
    assert await kept.compactions.all() == ()
    for named in (None, handle):
        with pytest.raises(CompactionNotFound):
            await kept.compactions.undo(named)
    assert kept.window == window
    assert (await kept.compactions.expand(f"m:{window[-1].id}"))[0].text == "d"
    with pytest.raises(MessageNotFound):
        await kept.compactions.expand("m:nothing")


async def test_what_a_person_erased_meanwhile_does_not_come_back(kept: Kept) -> None:
    await kept.say("one", "a secret plan", "three")
    handle = await kept.compact(2)
    stored = await kept.files.read(TRANSCRIPT)
    left = b"".join(each for each in stored.data.splitlines(keepends=True) if b"secret plan" not in each)
    await kept.rewrite(TRANSCRIPT, left)
    opened = await kept.compactions.expand(handle)
    assert ([message.text for message in opened], opened.missing) == (["one"], 1)
    made = await kept.compactions.undo()
    assert (made.messages, made.missing) == (2, 1)
    assert [message.text for message in kept.window] == ["one", "three"]


@pytest.mark.req("AS-STATE-01")
async def test_a_window_that_can_not_be_kept_stays_as_it_was(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    await kept.say(*"abcd")
    before = kept.window
    await kept.compact(2)
    window = kept.window

    async def full(path: str, data: bytes, *, expected: str) -> str:
        raise StorageFull

    with monkeypatch.context() as patched:
        patched.setattr(kept.files, "replace", full)
        with pytest.raises(StorageError):
            await kept.compactions.undo()
        assert (kept.window, kept.keeper.state.messages_at_undo) == (window, 0)
    await kept.compactions.undo()
    assert kept.window == before


async def test_a_kill_before_the_window_was_kept_leaves_one_that_undoing_does_not_change(kept: Kept) -> None:
    await kept.say(*"abcd")
    await kept.keeper.save()
    before = kept.window
    await kept.compact(2)
    stored = await kept.files.read(state_path("main", "s"))
    noted = (await kept.files.read(JOURNAL)).data
    await kept.compactions.undo()
    after = await kept.files.read(state_path("main", "s"))
    await kept.files.replace(JOURNAL, noted, expected=(await kept.files.read(JOURNAL)).version)
    await kept.open()
    await kept.compactions.undo()
    assert kept.window == before, "the state was kept and the undoing was not noted: it is done again"
    assert (await kept.files.read(state_path("main", "s"))).data == after.data != stored.data


async def test_a_compaction_that_can_not_be_noted_is_told_so(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    await kept.say(*"abcd")

    async def full(path: str, data: bytes, *, header: bytes = b"") -> None:
        raise StorageFull

    monkeypatch.setattr(kept.files, "append", full)
    with pytest.raises(StorageFull):
        await kept.compact(2)
    assert len(kept.window) == 4
    assert await kept.compactions.all() == ()


@pytest.mark.req("CC-UNDO")
async def test_without_files_a_compaction_is_undone_within_the_process() -> None:
    kept = await Kept(durable=False).open()
    await kept.say(*"abcd")
    before = kept.window
    handle = await kept.compact(3)
    kept.keeper.replace_window((*kept.window[:-1], replace(before[3], parts=(Text(text="[cleared]"),))))
    assert (await kept.compactions.expand(f"m:{before[3].id}")).messages == before[3:], (
        "what was cleared is opened whole"
    )
    assert (await kept.compactions.expand(handle)).messages == before[:3]
    assert (await kept.compactions.expand(f"m:{before[0].id}")).messages == before[:1]
    await kept.compactions.undo()
    assert kept.window == before
    assert await kept.files.list() == []


@pytest.mark.req("CC-UNDO", "CC-PIN")
async def test_what_was_pinned_stays_pinned_over_an_undo_and_a_process(kept: Kept) -> None:
    await kept.say(*"abcd")
    await kept.compact(2)
    (message,) = kept.window[-1:]
    assert is_pinned(await kept.compactions.pin(message.id))
    await kept.open()
    assert is_pinned(kept.window[-1])
    await kept.compactions.undo()
    assert [is_pinned(each) for each in kept.window] == [False, False, False, True]
    await kept.compactions.unpin(message.id)
    assert kept.window[-1] == message
    with pytest.raises(MessageNotFound):
        await kept.compactions.pin("nothing")


async def test_whose_session_it_is_is_durable_before_its_first_words() -> None:
    files = InMemoryFiles()
    states = FileStateStore(files, REDACTOR)
    seen: list[str] = []

    async def record(messages: Sequence[Message]) -> tuple[Message, ...]:
        seen.append((await states.load("main", "s")).state.user)
        return tuple(replace(message, id=str(number)) for number, message in enumerate(messages))

    keeper = SessionState(AgentState(agent="main", session="s", user="ada"), states=states, record=record)
    await keeper.record([said("Hello.")])
    assert seen == ["ada"]
    assert await files.info(state_path("main", "s"))


@pytest.mark.req("FC-SECRET")
async def test_a_summary_with_a_secret_is_written_without_it(kept: Kept) -> None:
    secret = "sk-ant-api03-" + "q" * 90
    await kept.say(*"abcdef")
    await kept.compact(2, summary=f"The key is {secret}.")
    await kept.compact(2)
    assert secret.encode() not in (await kept.files.read(JOURNAL)).data


_kept = st.one_of(
    any_messages(),
    st.builds(MessageReference, id=st.text(max_size=8), parent=st.one_of(st.none(), st.text(max_size=8))),
)


@st.composite
def _noted(draw: st.DrawFn) -> CompactionRecord:
    before = tuple(draw(st.lists(_kept, max_size=3)))
    gone = tuple(place for place in range(len(before)) if draw(st.booleans()))
    count = st.integers(0, 10**9)
    made = Compaction(
        handle=draw(st.text(max_size=8)),
        action=draw(st.sampled_from(["compact", "drop", "slide"])),
        at=datetime(2026, 11, 22, 8, 3, 11, 482_000, tzinfo=UTC),
        reason=draw(st.text(max_size=8)),
        first_id=draw(st.text(max_size=8)),
        last=draw(st.text(max_size=8)),
        messages=len(gone),
        tokens_before=draw(count),
        tokens_after=draw(count),
    )
    return CompactionRecord(
        compaction=made,
        before=before,
        removed_places=gone,
        inserted_ids=tuple(draw(st.lists(st.text(max_size=8), max_size=2))),
    )


@settings(max_examples=20)
@given(_noted())
def test_a_line_of_the_journal_gives_back_what_was_written(noted: CompactionRecord) -> None:
    found = parse_journal(render_record(noted) + b'{"v":1,"handle":"c\n' + render_undo("another", noted.compaction.at))
    assert found.records == (noted,)
    assert [broken.line for broken in found.broken_lines] == [2]


GOOD = Compaction(
    handle="c1",
    action="drop",
    at=datetime(2026, 11, 22, tzinfo=UTC),
    reason="",
    first_id="a",
    last="b",
    messages=2,
    tokens_before=9,
    tokens_after=1,
)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("0001-01-01T00:00:00"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(st.sampled_from(["v", "handle", "act", "at", "messages", "tokens", "gone", "put", "before", "undone"]), _json)
@example("gone", [[0, 99_999_999_999]])
@example("gone", [[-99_999_999_999, 1]])
@example("gone", [[0, 2]] * 3)
@example("at", "2026-11-22T08:00:00")
@example("at", "0001-01-01T00:00:00Z")
@example("tokens", [10**30, 1])
def test_no_value_in_a_line_breaks_the_reading_or_hides_another_line(name: str, value: object) -> None:
    noted = CompactionRecord(
        compaction=GOOD,
        before=(MessageReference(id="a"), MessageReference(id="b")),
        removed_places=(0, 1),
        inserted_ids=("n",),
    )
    fields = json.loads(render_record(noted)) | {"handle": "c2", name: value}
    other = replace(noted, compaction=replace(GOOD, handle="c3"))
    found = parse_journal(render_record(noted) + json.dumps(fields).encode() + b"\n" + render_record(other))
    assert [each for each in found.records if each.compaction.handle in {"c1", "c3"}] == [noted, other]
    assert not found.is_torn
    for each in found.records:
        assert each.removed_places == tuple(sorted(set(each.removed_places)))
        assert set(each.removed_places) <= set(range(len(each.before)))
        assert each.compaction.at.astimezone(UTC)


@settings(max_examples=20)
@given(st.binary(max_size=200))
def test_no_bytes_break_the_reading_of_a_journal(data: bytes) -> None:
    assert parse_journal(data).records == ()


@pytest.mark.parametrize(
    "text",
    [
        '{"v":1}',
        '{"v":1,"handle":"c","act":7,"at":"2026-11-22T08:00:00Z","messages":1,"tokens":[1,1],"before":[],"gone":[],"put":[]}',
        '{"v":1,"handle":"c","act":"drop","at":"2026-11-22T08:00:00Z","messages":1,"tokens":[1],"before":[],"gone":[],"put":[]}',
        '{"v":1,"handle":"c","act":"drop","at":"never","messages":1,"tokens":[1,1],"before":[],"gone":[],"put":[]}',
        '{"v":1,"handle":"c","act":"drop","at":"2026-11-22T08:00:00Z","messages":1,"tokens":[1,1],"before":[],"gone":[[0,2]],"put":[]}',
        '{"v":1,"handle":"c","act":"drop","at":"2026-11-22T08:00:00Z","messages":1,"tokens":[1,1],"before":[7],"gone":[],"put":[]}',
    ],
)
def test_a_line_that_says_something_else_is_reported(text: str) -> None:
    found = parse_journal(text.encode())
    assert found.records == ()
    assert len(found.broken_lines) == 1
