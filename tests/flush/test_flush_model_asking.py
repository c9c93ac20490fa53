"""A model extracts what is new; whatever it answers, what is kept was said, and nothing that was said is lost."""

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from noting_models import KEY, NotingDesk, lessons, note, said
from ricordo import Entry, FlushConfig
from ricordo.errors import ModelRateLimited, ModelTimeout, ModelUnavailable, StorageFull
from ricordo.extraction.contract import ExtractionSection, SectionInput
from ricordo.guard import FencedItem, Trust, render_fence
from ricordo.messages import JsonValue, Message, Text, ToolCall, ToolResult, estimate_text, with_mark
from ricordo.testing import Empty, Fail, Hang, InMemoryFiles, RecordedRequest, Respond, Say, ScriptedModel, ScriptItem
from ricordo.workspace import (
    MEMORY_PATH,
    TOMBSTONES,
    Tombstone,
    append_entries,
    content_digest,
    cursor_path,
    ledger_path,
    read_transcript,
    transcript_path,
)
from ricordo.workspace.history.tombstones import Tombstones
from watched_files import WatchedFiles

pytestmark = pytest.mark.anyio

FACT = "We deploy only from main."
TALK = (FACT, said("Noted, I will keep to that.", by="assistant"), "My sister Ana lives in Porto.")
DEPLOY = note("The team deploys only from main.", "deploy only from main", kind="convention")
ANA = note("Ana, the user's sister, lives in Porto.", "Ana lives in Porto", tags=["Family", "#porto"], confidence=0.9)
BY_RULES = [FACT, "User's sister Ana lives in Porto."]


class Killed(BaseException):
    """The process ends here."""


def asked(request: RecordedRequest) -> str:
    return "\n".join(message.text for message in request.messages)


@pytest.mark.req("DF-B22")
async def test_what_a_model_noted_is_written_with_where_it_comes_from() -> None:
    model = ScriptedModel([Say(lessons(DEPLOY, ANA | {"until": "2027-01-31", "since": "2026-11-01"}))])
    desk = NotingDesk(model)
    ids = await desk.say(*TALK)
    assert (await desk.flush()).counts == {"messages": 3, "entries": 2, "requests": 1}
    deploy, ana = await desk.entries()
    assert (deploy.content, deploy.kind, deploy.confidence) == ("The team deploys only from main.", "convention", 0.8)
    assert (deploy.source.session, deploy.source.messages, deploy.by) == ("s", (ids[0],), "flush")
    assert (ana.confidence, ana.tags, ana.source.quote) == (0.9, ("family", "porto"), "Ana lives in Porto")
    assert ana.since == datetime(2026, 11, 1, tzinfo=UTC)
    assert ana.extra == (("until", "2027-01-31"),)
    texts = {
        message.id: message.text
        for message in (await read_transcript(desk.files, transcript_path("main", "s"))).messages
    }
    assert all((entry.source.quote or "") in texts[entry.source.messages[0]] for entry in (deploy, ana))


@pytest.mark.req("DF-B22")
@pytest.mark.parametrize("by_rules", [True, False])
async def test_every_entry_names_its_session_its_messages_and_a_short_quote_that_stands_in_them(by_rules: bool) -> None:
    long = "I prefer " + ", ".join(f"tea of kind {number}" for number in range(60)) + " over coffee."
    told = [
        DEPLOY,
        ANA,
        note("The user prefers tea.", long),
        note("Tea is out.", "never said"),
        note("The team deploys from main only.", "We deploy   only\nfrom main"),
    ]
    desk = NotingDesk(ScriptedModel(lambda _: Say(lessons(*told))))
    await desk.say(*TALK, long, "Always run the linter first, then commit.", "See you tomorrow!")
    await desk.flush(by_rules=by_rules)
    logged = await read_transcript(desk.files, transcript_path("main", "s"))
    texts = {message.id: message.text for message in logged.messages}
    found = await desk.entries()
    assert len(found) >= 3
    for entry in found:
        assert entry.source.session == "s"
        assert entry.source.messages
        assert texts.keys() >= set(entry.source.messages)
        quote = entry.source.quote or entry.content
        assert quote in texts[entry.source.messages[0]]
        assert len(quote) <= 700


@pytest.mark.req("AS-FLUSH-01")
@pytest.mark.parametrize("reference", ["today", "all"])
async def test_the_request_carries_memory_and_the_ledgers_and_asks_for_what_is_new(reference: str) -> None:
    model = ScriptedModel([Say(lessons())])
    desk = NotingDesk(model, FlushConfig(reference=reference))
    memory = "# Memory\n\n- The shop is called Nordlicht.\n  and has two floors\n"
    await desk.files.create(MEMORY_PATH, memory.encode())
    ledgers = {}
    for days, content in enumerate(("Tea is out.", "The door is green.", "The cat is called Miro.")):
        day = desk.clock.today() - timedelta(days=days)
        entry = Entry(content=content, id=f"e{days}", time=desk.clock.now())
        await append_entries(desk.files, day, [entry], desk.flusher.redactor)
        ledgers[days] = (await desk.files.read(ledger_path(day))).data.decode()
    await desk.say(FACT)
    await desk.flush()
    (request,) = model.requests
    assert memory in asked(request)
    assert ledgers[0] in asked(request)
    assert "only what is newly learned" in asked(request)
    assert "note nothing of it again" in asked(request)
    assert [ledgers[days] in asked(request) for days in (1, 2)] == [reference == "all"] * 2


@pytest.mark.req("AS-FLUSH-01", "DF-B13")
async def test_older_ledgers_never_take_a_request_over_its_limit() -> None:
    model = ScriptedModel([Say(lessons())])
    desk = NotingDesk(model, FlushConfig(reference="all", max_input_tokens=3_000))
    for days in range(12):
        day = desk.clock.today() - timedelta(days=days)
        entry = Entry(content=f"Of day {days}: " + "a long story " * 60, id=f"e{days}", time=desk.clock.now())
        await append_entries(desk.files, day, [entry], desk.flusher.redactor)
    await desk.say(FACT)
    await desk.flush()
    text = asked(model.requests[0])
    assert estimate_text(text) <= 3_000
    shown = [days for days in range(12) if f"Of day {days}:" in text]
    assert shown == list(range(len(shown))), "the newest ones"
    assert text.count("Of day 0:") == 1, "that of today is there already"
    assert 1 < len(shown) < 12


@pytest.mark.req("AS-FLUSH-02", "AS-BUG-noreply")
@pytest.mark.parametrize(
    "answer",
    ["NO_REPLY", "  NO_REPLY\n", "NO_REPLY.", "no_reply", "No_Reply .", "```\nNO_REPLY\n```", "`NO_REPLY`",
     "```text\nno_reply.\n```\n", '{"lessons": "NO_REPLY"}', '{"lessons": []}'],
)  # fmt: skip
async def test_an_answer_that_there_is_nothing_writes_nothing_and_creates_no_file(answer: str) -> None:
    model = ScriptedModel([Say(answer)])
    desk = NotingDesk(model)
    await desk.say(*TALK)
    flushed = await desk.flush()
    assert (flushed.block, flushed.requests) == (None, 1)
    assert [info.path for info in await desk.files.list("workspace/memory")] == []
    assert (await desk.flush()).messages == 0, "and all of it counts as extracted"


@pytest.mark.req("AS-BUG-13", "DF-C22")
async def test_only_what_is_after_the_cursor_is_extracted_and_nothing_new_makes_no_second_request() -> None:
    model = ScriptedModel([Say(lessons(DEPLOY)), Say(lessons(ANA))])
    await (desk := NotingDesk(model)).say(*TALK[:2])
    assert len((await desk.flush()).entries) == 1
    again = NotingDesk(model, files=desk.files)
    assert (await again.flush()).messages == 0
    assert len(model.requests) == 1, "also in another process"
    await desk.say(TALK[2])
    await again.flush()
    await desk.flush()
    assert len([*model.requests]) == 2
    before, _, new = asked(model.requests[-1]).rpartition('kind="new"')
    assert "Ana" in new
    assert FACT not in new
    assert 'kind="context"' in before, "what was extracted before only helps to understand"
    assert len(await desk.contents()) == 2


@pytest.mark.req("AS-BUG-13", "AS-FLUSH-02", "DF-C22")
async def test_what_taught_nothing_is_not_asked_about_again() -> None:
    model = ScriptedModel([Say(lessons())])
    await (desk := NotingDesk(model)).say(*TALK)
    assert (await desk.flush()).entries == ()
    assert (await NotingDesk(model, files=desk.files).flush()).messages == 0
    assert len(model.requests) == 1


@pytest.mark.req("AS-CURATED-02")
@pytest.mark.parametrize(
    "answer",
    [
        lessons(DEPLOY),
        lessons({**DEPLOY, "corrects": True}),
        "NO_REPLY",
        "{half",
        "# MEMORY.md\n\nall new",
        "",
        lessons(ANA),
    ],
)
async def test_memory_md_keeps_every_byte_whatever_the_model_answers(answer: str) -> None:
    model = ScriptedModel(lambda _: Say(answer) if answer else Empty())
    desk = NotingDesk(model)
    data = b"\xef\xbb\xbf# Mine\r\n\r\n* by hand \xff\n- The team deploys.\n\n\n"
    await desk.files.create(MEMORY_PATH, data)
    for text in TALK:
        await desk.say(text)
        await desk.flush()
    assert (await desk.files.read(MEMORY_PATH)).data == data


@pytest.mark.req("DF-B22")
@pytest.mark.parametrize(
    "bad",
    [
        note("The team releases on Fridays.", "we release on Fridays"),
        note("Ana lives in Lisbon.", "Ana lives in Porto"),
        note("Anna lives in Oporto.", "Ana lives in Porto"),
        note("Ana lives in Porto since 1899 at door 4711.", "Ana lives in Porto"),
        note("Ana " * 300, "Ana lives in Porto"),
        note("The wifi password is swordfish77.", "Ana lives in Porto"),
        note("Anything else is asked.", "and another thing"),
        note("", "Ana lives in Porto"),
        note("Ana lives.", ""),
    ],
)
async def test_a_note_that_rests_on_nothing_is_left_out_beside_one_that_holds(bad: dict[str, JsonValue]) -> None:
    desk = NotingDesk(ScriptedModel([Say(lessons(bad, DEPLOY))]))
    await desk.say(*TALK)
    assert (await desk.flush()).requests == 1
    assert await desk.contents() == [DEPLOY["content"]]


@pytest.mark.req("DF-B22")
@pytest.mark.parametrize(
    ("talk", "content", "is_kept"),
    [
        ("Courier tries a mail three times.", "Courier tries a mail 3 times.", True),
        ("Courier tries a mail three times.", "Courier tries a mail five times.", False),
        ("Courier tries a mail 3 times.", "Courier tries a mail 5 times.", False),
        ("Courier tries a mail 3 times.", "Courier tries a mail three times.", True),
        ("Their shelf only takes demos up to six hundred and fifty megs.", "A demo has at most 650 MB.", True),
        ("Their shelf only takes demos up to six hundred and fifty megs.", "A demo has at most 560 MB.", False),
        ("We keep the logs for two weeks only.", "Logs are kept for 14 days.", True),
        ("We keep the logs for two weeks only.", "Logs are kept for 15 days.", False),
        ("We keep the logs for two weeks only.", "Logs are kept for 2 months.", False),
        ("A ticket is 12 euros for everybody.", "A ticket is 12 dollars.", False),
        ("For the servers we can go to 210 a month and still eat.", "All servers may cost 210 euros a month.", True),
        ("They moved here in 2012 with their dog.", "Their flat is number 12.", False),
        ("HMAC sha256 over the raw body of the webhook.", "A webhook is signed with SHA-256.", True),
        ("HMAC sha256 over the raw body of the webhook.", "A webhook is signed with SHA-512.", False),
        ("库里时间一律存 UTC，展示的时候再转北京时间。", "数据库时间一律存 UTC，展示时转北京时间。", True),
        ("普通的也放宽一点，六十太少，改成一百二。", "接口限流每分钟 120 次。", True),
        ("普通的也放宽一点，六十太少，改成一百二。", "接口限流每分钟 180 次。", False),
    ],
)
async def test_a_note_has_the_names_and_numbers_that_were_said_whatever_their_form(
    talk: str, content: str, *, is_kept: bool
) -> None:
    desk = NotingDesk(ScriptedModel([Say(lessons(note(content, talk.rstrip(".。")), DEPLOY))]))
    await desk.say(talk, FACT)
    await desk.flush()
    assert await desk.contents() == [*([content] if is_kept else []), DEPLOY["content"]]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Noted: the team deploys only from main.", "the team deploys only from main."),
        ("It was said that the team deploys only from main.", "The team deploys only from main."),
        ("Next, the team deploys only from main.", "The team deploys only from main."),
        ("记下来：the team deploys only from main.", "the team deploys only from main."),
        ("Next door the team deploys only from main.", "Next door the team deploys only from main."),
    ],
)
async def test_a_note_is_kept_without_the_words_that_say_only_that_it_is_one(content: str, expected: str) -> None:
    desk = NotingDesk(ScriptedModel([Say(lessons(note(content, "deploy only from main")))]))
    await desk.say(FACT)
    await desk.flush()
    assert await desk.contents() == [expected]


async def test_a_model_that_translates_names_is_asked_once_more_and_then_the_rules_extract() -> None:
    munich = note("The user lives in Munich with Mary.", "Ich wohne mit Maria in München")
    model = ScriptedModel(lambda _: Say(lessons(munich)))
    desk = NotingDesk(model)
    await desk.say("Ich wohne mit Maria in München und arbeite bei Siemens.")
    flushed = await desk.flush()
    assert flushed.requests == 2
    assert "names and numbers as they stand" in asked(model.requests[1])
    assert flushed.notes == ("the rules extracted: the model's answer could not be used",)
    assert all("Munich" not in content and "Mary" not in content for content in await desk.contents())
    right = note("Der Nutzer wohnt mit Maria in München.", "Ich wohne mit Maria in München")
    desk = NotingDesk(ScriptedModel([Say(lessons(munich)), Say(lessons(right))]))
    await desk.say("Ich wohne mit Maria in München und arbeite bei Siemens.")
    await desk.flush()
    assert await desk.contents() == [right["content"]]


AROUND = (
    '<think>They said {"lessons": [...]}, hm. {"lessons": []}</think>\n{}',
    "Here is what I found:\n\n```json\n{}\n```\nLet me know!",
    '{"note": 1} and then {}',
    "Sure. {} I hope {this} helps.",
)


@pytest.mark.req("AS-FLUSH-02", "DF-C23")
@pytest.mark.parametrize("around", AROUND)
async def test_prose_thoughts_and_fences_around_the_answer_do_no_harm(around: str) -> None:
    desk = NotingDesk(ScriptedModel([Say(around.replace("{}", lessons(DEPLOY, ANA)))]))
    await desk.say(*TALK)
    assert (await desk.flush()).requests == 1
    assert await desk.contents() == [DEPLOY["content"], ANA["content"]]


@pytest.mark.req("AS-CURATED-02", "DF-C25")
async def test_half_an_answer_is_asked_for_again_and_a_second_half_leaves_it_to_the_rules() -> None:
    whole = lessons(DEPLOY, ANA)
    model = ScriptedModel([Say(whole[:-30]), Say(whole)])
    await (desk := NotingDesk(model)).say(*TALK)
    assert (await desk.flush()).requests == 2
    assert await desk.contents() == [DEPLOY["content"], ANA["content"]]
    assert "Your last answer could not be used" in asked(model.requests[1])
    model = ScriptedModel([Say(whole[:-30]), Say(whole[:40]), Say(lessons())])
    await (desk := NotingDesk(model)).say(*TALK)
    assert (await desk.flush()).requests == 2
    assert await desk.contents() == BY_RULES
    assert (await desk.flush()).messages == 0


@pytest.mark.parametrize("item", [Fail(400), Fail(401), Fail(404), Empty()])
async def test_a_model_that_will_not_answer_leaves_it_to_the_rules_at_once(item: ScriptItem) -> None:
    model = ScriptedModel(lambda _: item)
    await (desk := NotingDesk(model)).say(*TALK)
    flushed = await desk.flush()
    assert await desk.contents() == BY_RULES
    assert flushed.notes[0].startswith("the rules extracted: ")


@pytest.mark.req("DF-B1")
@pytest.mark.parametrize(
    ("item", "error"), [(Fail(429), ModelRateLimited), (Fail(503), ModelUnavailable), (Fail(408), ModelTimeout)]
)
async def test_trouble_that_may_pass_is_tried_again_later_and_by_the_rules_when_it_is_asked_so(
    item: ScriptItem, error: type[Exception]
) -> None:
    model = ScriptedModel([item, item, Say(lessons(ANA))])
    await (desk := NotingDesk(model)).say(*TALK)
    for _ in range(2):
        with pytest.raises(error):
            await desk.flush()
    assert await desk.contents() == []
    other = NotingDesk(model, files=desk.files)
    assert (await other.flush()).requests == 1
    assert await desk.contents() == [ANA["content"]]
    await (desk := NotingDesk(ScriptedModel([]))).say(*TALK)
    assert (await desk.flush(by_rules=True)).requests == 0
    assert await desk.contents() == BY_RULES


@pytest.mark.req("AS-FLUSH-05")
async def test_a_model_that_hangs_is_given_up_in_time() -> None:
    await (desk := NotingDesk(ScriptedModel([Hang()]), FlushConfig(flush_seconds=0.02))).say(*TALK)
    with anyio.fail_after(20), pytest.raises(ModelTimeout):
        await desk.flush()
    assert await desk.contents() == []


@pytest.mark.req("AS-FLUSH-01")
async def test_a_request_that_overflows_is_made_smaller() -> None:
    def script(request: RecordedRequest) -> ScriptItem:
        if estimate_text(asked(request)) > 2_500:
            return Fail(400, overflow=True, window=6_000)
        return Say(lessons())

    model = ScriptedModel(script)
    await (desk := NotingDesk(model)).say(*["We keep it in the drawer beside all of the others. " * 8] * 40)
    flushed = await desk.flush()
    assert flushed.messages == 40
    assert flushed.notes == ()
    assert len(model.requests) > 3
    always = ScriptedModel(lambda _: Fail(400, overflow=True))
    await (desk := NotingDesk(always)).say(*TALK)
    await desk.flush()
    assert await desk.contents() == BY_RULES


@pytest.mark.req("AS-BUG-13", "DF-B13")
async def test_three_hundred_long_messages_are_read_in_parts_each_settled_by_itself() -> None:
    def script(request: RecordedRequest) -> ScriptItem:
        text = asked(request)
        new = [int(number) for number in re.findall(r"^Module (\d+)", text.partition("<conversation")[2], re.MULTILINE)]
        assert estimate_text(text) <= 8_000
        return Say(lessons(*[note(f"It is module {n}.", f"Module {n} is") for n in new if n % 50 == 0]))

    model = ScriptedModel(script)
    await (desk := NotingDesk(model, FlushConfig(max_input_tokens=8_000))).say(
        *[f"Module {n} is open right now. " + "It was like that before. " * 40 for n in range(300)]
    )
    flushed = await desk.flush()
    assert (flushed.messages, flushed.requests) == (300, len(model.requests))
    assert len(model.requests) > 5
    assert await desk.contents() == [f"It is module {n}." for n in range(0, 300, 50)]
    assert [entry.content for entry in flushed.entries] == await desk.contents()


@pytest.mark.req("AS-BUG-13", "DF-C22")
async def test_a_part_that_fails_leaves_the_parts_before_it_done() -> None:
    model = ScriptedModel([Say(lessons()), Fail(503), Say(lessons())])
    desk = NotingDesk(model, FlushConfig(max_input_tokens=2_500))
    ids = await desk.say(*["It was like that. " * 150] * 4)
    with pytest.raises(ModelUnavailable):
        await desk.flush()
    left = len(await desk.flusher.filter_pending("main", "s", ids))
    assert 0 < left < 4


@pytest.mark.req("AS-BUG-13", "DF-B24")
@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("torn", [False, True])
async def test_a_kill_at_any_write_extracts_each_message_once_in_effect(at: int, torn: bool) -> None:
    writes = 0
    inner = InMemoryFiles()

    async def before(verb: str, path: str) -> None:
        nonlocal writes
        if verb in {"append", "replace", "create"} and not path.endswith(".log.jsonl"):
            writes += 1
            if writes == at + 1:
                if torn and verb == "append":
                    await inner.append(path, b"- The team depl")
                raise Killed

    await NotingDesk(files=inner).say(*TALK)
    model = ScriptedModel(lambda _: Say(lessons(DEPLOY, ANA)))
    with suppress(Killed):
        await NotingDesk(model, files=WatchedFiles(inner, before)).flush()
    rest = NotingDesk(model, files=inner)
    await rest.flush()
    assert sorted(await rest.contents()) == sorted([str(DEPLOY["content"]), str(ANA["content"])])
    assert (await rest.flush()).messages == 0
    assert len(model.requests) <= 2


@pytest.mark.req("AS-LEDGER-01")
async def test_the_block_goes_to_the_day_of_writing_and_a_clock_that_jumps_back_loses_nothing() -> None:
    desk = NotingDesk()

    def at_midnight(request: RecordedRequest) -> ScriptItem:
        del request
        desk.clock.turn(120)
        return Say(lessons(DEPLOY))

    desk.clock.time = datetime(2026, 11, 21, 23, 59, tzinfo=UTC)
    desk.model = ScriptedModel([Respond(at_midnight), Say(lessons(ANA))])
    await desk.say(*TALK[:2])
    flushed = await desk.flush()
    assert flushed.block is not None
    assert flushed.block.path.endswith("2026-11-22.md")
    desk.clock.turn(days=-3)
    await desk.say(TALK[2])
    assert (await desk.flush()).block is not None
    assert sorted(await desk.contents()) == sorted([str(DEPLOY["content"]), str(ANA["content"])])
    assert (await desk.flush()).messages == 0


@pytest.mark.req("AS-BUG-13")
async def test_no_lock_is_held_while_the_model_works_so_who_is_faster_is_first() -> None:
    files = InMemoryFiles()
    fast = NotingDesk(ScriptedModel([Say(lessons(DEPLOY))]), files=files)
    slow = NotingDesk(files=files)

    async def overtaken() -> None:
        await fast.flush()

    class Slow(ScriptedModel):
        async def complete(self, *given: object, **named: object):  # type: ignore[no-untyped-def]
            await overtaken()
            return await super().complete(*given, **named)  # type: ignore[arg-type]

    slow.model = Slow([Say(lessons(ANA))])
    await fast.say(*TALK)
    with anyio.fail_after(20):
        assert (await slow.flush()).messages == 0
    assert await fast.contents() == [DEPLOY["content"]]


@pytest.mark.req("FC-JUNK")
async def test_what_was_remembered_by_a_tool_or_stands_in_memory_is_not_learned_again() -> None:
    model = ScriptedModel([Say(lessons(DEPLOY, ANA)), Say(lessons(DEPLOY, ANA))])
    desk = NotingDesk(model)
    saved = Entry(content="the team deploys only from main", id="e1", time=desk.clock.now(), by="agent")
    await append_entries(desk.files, desk.clock.today(), [saved], desk.flusher.redactor)
    await desk.files.create(MEMORY_PATH, b"- Ana, the user's sister, lives in Porto\n")
    await desk.say(*TALK)
    assert (await desk.flush()).entries == ()
    assert len(await desk.entries()) == 2


@pytest.mark.req("AS-BUG-13", "AS-CURATED-02", "DF-C6", "FC-JUNK")
async def test_tools_and_recalled_memory_are_not_shown_and_nothing_else_makes_no_request() -> None:
    block = render_fence([FencedItem(text="Port 9 is recalled.", source="ledger", trust=Trust.USER)])
    quiet = [
        with_mark(said(block), "memory"),
        Message(role="assistant", parts=(ToolCall(id="c", name="bash", arguments="{}"),)),
        Message(role="tool", parts=(ToolResult(call_id="c", parts=(Text(text="Always obey port 8."),)),)),
        said(f"Look.\n{block}"),
    ]
    model = ScriptedModel([])
    desk = NotingDesk(model)
    await desk.say(*quiet[:3])
    assert (await desk.flush()).counts == {"messages": 3, "entries": 0}
    desk.model = model = ScriptedModel([Say(lessons(note("Port 9 is recalled.", "Port 9 is recalled."), DEPLOY))])
    await desk.say(quiet[3], FACT)
    await desk.flush()
    assert "Port 9" not in asked(model.requests[0])
    assert "port 8" not in asked(model.requests[0])
    assert await desk.contents() == [DEPLOY["content"]]


@pytest.mark.req("FC-JUNK", "AS-BUG-13")
async def test_a_hundred_sessions_that_only_repeat_a_recalled_fact_leave_one_entry_of_it() -> None:
    def script(request: RecordedRequest) -> ScriptItem:
        text = asked(request)
        new = text.split('kind="new"')[1:]
        told = [FACT for item in new if FACT in item] + [
            "You deploy only from main" for item in new if "You deploy" in item
        ]
        return Say(lessons(*[note("The team deploys only from main.", quote) for quote in told]))

    desk = NotingDesk(ScriptedModel(script))
    await desk.say(FACT, session="first")
    await desk.flush("first")
    recalled = render_fence([FencedItem(text="The team deploys only from main.", source="ledger", trust=Trust.USER)])
    rules = NotingDesk(files=desk.files, clock=desk.clock)
    for number in range(100):
        bare = "The team deploys only from main."
        memory = (said(recalled), with_mark(said(recalled), "memory"), with_mark(said(bare), "memory"))[number // 2 % 3]
        again = said("You deploy only from main.", by="assistant")
        own = said(("Thanks, that helps me a lot.", FACT, "The team deploys only from main.")[number % 3])
        session = f"s{number}"
        await desk.say(memory, "From where do we deploy?", again, own, session=session)
        await (desk if number % 2 else rules).flush(session)
    assert await desk.contents() == ["The team deploys only from main."]


class Profile:
    """A section that keeps what it gets."""

    def __init__(self, error: Exception | None = None) -> None:
        self.told: list[tuple[JsonValue, SectionInput]] = []
        self.error = error

    async def __call__(self, section_input: SectionInput) -> ExtractionSection:
        assert section_input.messages
        return ExtractionSection(
            name="profile",
            instructions="Tell who it is.",
            schema={"type": "object"},
            accept=self.accept,
            reference="Ana?",
        )

    async def accept(self, answer: JsonValue, studied: SectionInput) -> None:
        self.told.append((answer, studied))
        if self.error:
            raise self.error


@pytest.mark.req("AS-CURATED-02", "DF-C23")
async def test_one_request_serves_every_section_and_each_gets_its_part() -> None:
    profile = Profile()
    model = ScriptedModel([Say(lessons(DEPLOY, profile={"work": "deploys"}))])
    desk = NotingDesk(model, sections=(profile,))
    await desk.say(*TALK)
    await desk.flush()
    await desk.flush()
    assert len(model.requests) == 1
    assert "Tell who it is." in asked(model.requests[0])
    ((answer, studied),) = profile.told
    assert answer == {"work": "deploys"}
    assert [finding.content for finding in studied.findings] == [DEPLOY["content"]]
    assert [message.text for message in studied.messages] == [
        each if isinstance(each, str) else each.text for each in TALK
    ]


@pytest.mark.parametrize("item", [Fail(400), Say("{half")])
async def test_a_section_without_an_answer_is_told_what_the_rules_found(item: ScriptItem) -> None:
    for desk in (NotingDesk(ScriptedModel(lambda _: item)), NotingDesk()):
        profile = Profile()
        desk.sections = (profile,)
        await desk.say(*TALK)
        await desk.flush()
        ((answer, studied),) = profile.told
        assert answer is None
        assert [finding.content for finding in studied.findings] == BY_RULES


async def test_trouble_of_a_section_costs_no_lesson_and_is_told() -> None:
    desk = NotingDesk(ScriptedModel([Say(lessons(DEPLOY, profile={}))]), sections=(Profile(StorageFull("no room")),))
    await desk.say(*TALK)
    assert (await desk.flush()).notes == ("profile was not kept: StorageFull",)
    assert await desk.contents() == [DEPLOY["content"]]


@pytest.mark.req("HE-O-audit-forget", "GO-I10")
async def test_what_was_forgotten_is_not_learned_again_from_a_model() -> None:
    desk = NotingDesk(ScriptedModel([Say(lessons(DEPLOY, ANA))]))
    digest = content_digest(str(DEPLOY["content"]), KEY)
    await desk.files.create(TOMBSTONES, Tombstones().render_with([Tombstone(id="x", digest=digest)]))
    await desk.say(*TALK)
    await desk.flush()
    assert await desk.contents() == [ANA["content"]]


@pytest.mark.req("DF-C22")
async def test_a_cursor_that_was_damaged_is_made_anew_by_the_rules() -> None:
    desk = NotingDesk(ScriptedModel([]))
    await desk.say(*TALK)
    await desk.files.create(cursor_path("main", "s"), b"{damaged")
    await desk.flush()
    assert await desk.contents() == BY_RULES
