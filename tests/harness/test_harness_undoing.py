"""Undoing compactions in any order: what went comes back in its place, or it is said why it does not."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kept_sessions import JOURNAL, REDACTOR, TRANSCRIPT, Kept
from ricordo.agent.compaction_journal import Compaction, CompactionRecord, Journal, MessageReference
from ricordo.agent.compaction_journal import JournalMessage as KeptMessage
from ricordo.agent.window_edits import is_restored, restore_window
from ricordo.context import Act
from ricordo.errors import CompactionNotFound, MessageNotFound, StorageReadOnly, UndoRefused
from ricordo.messages import Message, Text, get_mark, with_mark
from ricordo.workspace import FileStateStore

pytestmark = [pytest.mark.anyio, pytest.mark.req("CC-UNDO")]


@pytest.fixture
async def kept() -> Kept:
    return await Kept().open()


@pytest.mark.parametrize("older_first", [True, False])
async def test_a_summary_and_a_slide_are_undone_in_either_order(kept: Kept, older_first: bool) -> None:
    await kept.say(*"abcd")
    first = await kept.compact(3)
    await kept.say(*"efgh")
    second = await kept.slide(lambda message: message.text in {"e", "f"})
    await kept.say("i")
    for handle in (first, second) if older_first else (second, first):
        await kept.compactions.undo(handle)
    assert kept.texts == list("abcdefghi")


async def test_a_slide_is_not_undone_where_its_place_is_in_a_later_summary(kept: Kept) -> None:
    await kept.say(*"abcd")
    first = await kept.slide(lambda message: message.text in {"a", "c"})
    later = await kept.compact(1)
    with pytest.raises(UndoRefused, match=f"{later} was made of what it left"):
        await kept.compactions.undo(first)
    await kept.compactions.undo(later)
    await kept.compactions.undo(first)
    assert kept.texts == list("abcd")


async def test_an_older_one_is_not_taken_for_the_newest_whose_record_is_torn(kept: Kept) -> None:
    await kept.say(*"abcdef")
    first = await kept.compact(2)
    await kept.compact(3, summary="All of it.")
    one, two = (await kept.files.read(JOURNAL)).data.splitlines()
    await kept.rewrite(JOURNAL, one + b"\n" + two[:40])
    before = kept.window
    with pytest.raises(UndoRefused, match="name the one to undo"):
        await kept.compactions.undo()
    with pytest.raises(UndoRefused, match="whose record can't be read"):
        await kept.compactions.undo(first)
    assert kept.window == before


@pytest.mark.parametrize("said_more", [True, False])
async def test_a_slide_in_a_window_that_was_emptied_is_not_undone(kept: Kept, said_more: bool) -> None:
    await kept.say(*"abcd")
    await kept.slide(lambda message: message.text in {"a", "b"})
    kept.keeper.replace_window(())
    if said_more:
        await kept.say("e")
    with pytest.raises(UndoRefused, match="emptied since"):
        await kept.compactions.undo()
    assert kept.texts == ["e"] * said_more


async def test_no_summary_comes_back_beside_a_conversation_that_was_made_anew(kept: Kept) -> None:
    await kept.say(*"abcdef")
    whole = kept.window
    first = await kept.compact(2)
    await kept.compact(3, summary="All of it.")
    kept.keeper.replace_window(whole)
    with pytest.raises(UndoRefused, match="not in the window any more"):
        await kept.compactions.undo()
    assert (await kept.compactions.undo(first)).is_undone, "all of it is there, and nothing in its place"
    assert kept.window == whole


async def test_what_undo_brings_back_is_not_written_again_when_it_goes_again(kept: Kept) -> None:
    await kept.say(*(f"word {letter}" for letter in "abcdef"))
    for _ in range(2):
        await kept.compact(4)
        await kept.compactions.undo()
    await kept.compact(5)
    assert b"word" not in (await kept.files.read(JOURNAL)).data


async def test_nothing_is_undone_when_nothing_of_it_can_be_found(kept: Kept) -> None:
    await kept.say(*"abcd")
    handle = await kept.compact(3)
    before = kept.window
    await kept.files.delete(TRANSCRIPT)
    with pytest.raises(UndoRefused, match="none of the messages that it took away can be found any more, 3 in all"):
        await kept.compactions.undo()
    opened = await kept.compactions.expand(handle)
    assert (list(opened), opened.missing, kept.window) == ([], 3, before)


async def test_a_root_that_can_only_be_read_shows_what_is_on_record_and_undoes_nothing(kept: Kept) -> None:
    await kept.say(*"abcd")
    handle = await kept.compact(3)
    files = {path: (await kept.files.read(path)).data for path in (JOURNAL, TRANSCRIPT)}
    await kept.open(writable=False)
    await kept.say("e", "f")
    here = await kept.slide(lambda message: message.text in {"d", "e"})
    assert [made.handle for made in await kept.compactions.all()] == [here, handle]
    assert [message.text for message in await kept.compactions.expand(handle)] == ["a", "b", "c"]
    assert [message.text for message in await kept.compactions.expand(here)] == ["d", "e"], "within this process"
    for named in (None, handle, here):
        with pytest.raises(StorageReadOnly):
            await kept.compactions.undo(named)
    assert {path: (await kept.files.read(path)).data for path in files} == files


async def test_a_handle_is_taken_as_it_is_written_and_a_missing_one_is_told(kept: Kept) -> None:
    await kept.say(*"abcd")
    handle = await kept.compact(3)
    assert len(await kept.compactions.expand(f" `{handle}` ")) == 3
    assert (await kept.compactions.undo(f"`{handle}`")).is_undone
    for act in (kept.compactions.expand, kept.compactions.undo):
        with pytest.raises(CompactionNotFound, match="handle of a compaction is missing"):
            await act("")
    for other in (kept.compactions.pin, kept.compactions.unpin):
        with pytest.raises(MessageNotFound, match="id of a message is missing"):
            await other("")
    with pytest.raises(MessageNotFound, match="id of a message is missing"):
        await kept.compactions.expand("m:")


async def test_the_state_that_undo_leaves_is_that_of_the_next_process(kept: Kept) -> None:
    await kept.say(*"abcd")
    first = await kept.compact(2)
    await kept.slide(lambda message: message.text == "c")
    await kept.compactions.undo(first)
    assert (await FileStateStore(kept.files, REDACTOR).load("main", "s")).state.window == kept.window
    assert kept.texts == list("abd")


@dataclass
class Simulated:
    """A window and what happens to it, without files: ids are numbers in the order of the conversation."""

    said: dict[str, Message] = field(default_factory=dict)
    window: tuple[Message, ...] = ()
    noted: tuple[CompactionRecord, ...] = ()

    def say(self) -> None:
        number = f"{len(self.said):03}"
        self.said[number] = Message(role="user", parts=(Text(text=number),), id=number)
        self.window = (*self.window, self.said[number])

    def reduce(self, act: Act, going: list[bool]) -> None:
        """Take away messages but the last: of a summary the first ones, else those that are `going` and are none."""
        before = self.window
        most = min(len(going), len(before) - 1)
        if act == "compact":
            gone = tuple(range(most))
        else:
            gone = tuple(at for at in range(most) if going[at] and get_mark(before[at]) != "summary")
        if not gone:
            return
        handle = f"c{len(self.noted)}"
        stands = with_mark(Message(role="user", id=handle), "summary" if act == "compact" else "notice")
        put = () if act == "slide" else (stands,)
        self.window = tuple(
            message
            for at, old in enumerate(before)
            for message in (*(put if at == gone[0] else ()), *(() if at in gone else (old,)))
        )
        made = Compaction(
            handle=handle, action=act, at=datetime(2026, 11, 22, tzinfo=UTC), reason="", first_id="", last="",
            messages=len(gone), tokens_before=2, tokens_after=1,
        )  # fmt: skip
        kept: tuple[KeptMessage, ...] = tuple(
            each if get_mark(each) else MessageReference(id=each.id) for each in before
        )
        self.noted += (
            CompactionRecord(
                compaction=made, before=kept, removed_places=gone, inserted_ids=tuple(each.id for each in put)
            ),
        )

    def undo(self, number: int) -> bool:
        """Undo one and tell whether that was done."""
        noted = self.noted[number]
        if not is_restored(noted, self.said, self.window):
            try:
                self.window = restore_window(noted, Journal(records=self.noted), self.said, self.window).window
            except UndoRefused:
                return False
        done = replace(noted, compaction=replace(noted.compaction, is_undone=True))
        self.noted = (*self.noted[:number], done, *self.noted[number + 1 :])
        return True

    def originals(self, message: Message) -> list[str]:
        """Return the ids of the messages that one stands for."""
        if get_mark(message) is None:
            return [message.id]
        (noted,) = (each for each in self.noted if message.id in each.inserted_ids)
        stood = (noted.before[place] for place in noted.removed_places)
        return [each for one in stood for each in (self.originals(one) if isinstance(one, Message) else [one.id])]

    def check(self) -> None:
        """The window is in the order of the conversation, and holds nothing twice, be it in a summary."""
        every = [self.originals(message) for message in self.window]
        flat = [each for ids in every for each in ids]
        assert len(set(flat)) == len(flat)
        assert [ids[0] for ids in every] == sorted(ids[0] for ids in every)


_reduction = st.tuples(st.sampled_from(["compact", "slide", "drop"]), st.lists(st.booleans(), min_size=1, max_size=6))
_step = st.one_of(
    st.just(("say", 3)),
    st.just(("clear", 0)),
    st.just(("anew", 0)),
    st.tuples(st.just("undo"), st.integers(0, 5)),
    _reduction,
)


@settings(max_examples=150)
@given(st.lists(_step, max_size=14))
@example([("drop", [True]), ("slide", [True]), ("anew", 0), ("undo", 1)])
@example([("slide", [True]), ("anew", 0), ("compact", [False]), ("undo", 0)])
@example([("slide", [False, True]), ("slide", [True]), ("undo", 0), ("undo", 1)])
def test_undoing_in_any_order_scrambles_nothing_and_doubles_nothing(steps: list[tuple[str, object]]) -> None:
    one = Simulated()
    for name, given_with in [("say", 4), *steps]:
        if name == "say":
            for _ in range(3):
                one.say()
        elif name == "clear":
            one.window = ()
        elif name == "anew":
            one.window = tuple(one.said.values())
        elif name == "undo" and isinstance(given_with, int):
            if one.noted:
                one.undo(given_with % len(one.noted))
        elif isinstance(given_with, list):
            one.reduce(name, given_with)
        one.check()


@settings(max_examples=60)
@given(st.lists(st.one_of(st.none(), _reduction), max_size=10))
def test_undoing_the_newest_again_and_again_brings_all_back(steps: list[tuple[Act, list[bool]] | None]) -> None:
    one = Simulated()
    for step in [None, *steps]:
        if step is None:
            for _ in range(3):
                one.say()
        else:
            one.reduce(*step)
    for number in reversed(range(len(one.noted))):
        assert one.undo(number)
    assert one.window == tuple(one.said.values())
