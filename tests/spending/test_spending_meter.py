"""The meter: what memory asks a model for counts, and ends at the day's limit, in every process of a root."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from fake_models import FakeModel, Hanging, reply, say
from hand_clock import HandClock
from ricordo.errors import InvalidSetting, ModelUnavailable, ReplyInvalid, SpendingLimitReached, StorageFull
from ricordo.messages import Usage, estimate_message, estimate_request
from ricordo.models import Reply, ReplyFinished, SpendingConfig, SpendingMeter
from ricordo.models.spending import SpendingJournal, SpendingTotal
from ricordo.scope import Scope
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-CAP")]

ASK = [say("What was said?")]
FREE = SpendingConfig(daily_tokens=None, daily_cost=None)


def answer(tokens: int = 100, cost: str | None = "0.01") -> Reply:
    usage = Usage(input=tokens * 9 // 10, output=tokens // 10)
    return replace(reply("Nothing."), usage=usage, cost=Decimal(cost) if cost else None, model="maker-1")


@dataclass
class Desk:
    files: Any = field(default_factory=InMemoryFiles)
    clock: HandClock = field(default_factory=HandClock)

    def meter(self, config: SpendingConfig = FREE) -> SpendingMeter:
        return SpendingMeter(self.files, config, self.clock)

    async def ask(self, meter: SpendingMeter, *items: Any, purpose: str = "flush") -> Sequence[Reply]:
        model = meter.wrap(FakeModel(*items), purpose, scope=Scope(user="me", session="s1"))
        return [await model.complete(ASK) for _ in items]


async def test_each_request_is_written_down_with_its_tokens_cost_purpose_and_for_whom() -> None:
    desk = Desk()
    meter = desk.meter()
    await desk.ask(meter, answer(), answer(200, cost=None))
    assert await meter.read_today() == SpendingTotal(requests=2, input=270, output=30, cost=Decimal("0.01"), unpriced=1)
    first = (await SpendingJournal(desk.files).read_since(desk.clock.today()))[0]
    assert (first.purpose, first.model, first.user, first.session) == ("flush", "maker-1", "me", "s1")
    stored = (await desk.files.read("spending/2026-11.jsonl")).data
    assert b"said" not in stored
    assert b"Nothing" not in stored


@pytest.mark.parametrize(
    ("config", "made", "why"),
    [
        (SpendingConfig(daily_tokens=250, daily_cost=None, reply_tokens=10), 2, r"200 of 250 tokens"),
        (SpendingConfig(daily_tokens=None, daily_cost=0.025), 3, r"0\.03 of 0\.03 dollars|0\.03 of 0\.02 dollars"),
        (SpendingConfig(daily_tokens=0), 0, r"0 of 0 tokens"),
        (SpendingConfig(daily_cost=0), 0, r"0\.00 of 0\.00 dollars"),
    ],
)
async def test_the_request_that_would_pass_the_limit_is_not_made(config: SpendingConfig, made: int, why: str) -> None:
    desk, model = Desk(), FakeModel(*[answer() for _ in range(5)])
    meter = desk.meter(config)
    metered = meter.wrap(model, "flush")
    long = [say("word " * 48)]
    for _ in range(made):
        await metered.complete(long)
    with pytest.raises(SpendingLimitReached, match=why):
        await metered.complete(long)
    assert len(model.asked) == made
    assert (await meter.read_today()).requests == made


async def test_the_next_day_begins_anew_and_what_was_is_kept() -> None:
    desk = Desk()
    meter = desk.meter(SpendingConfig(daily_tokens=105, reply_tokens=10))
    await desk.ask(meter, answer())
    with pytest.raises(SpendingLimitReached):
        await desk.ask(meter, answer())
    desk.clock.turn(days=10)
    await desk.ask(meter, answer())
    found = await SpendingJournal(desk.files).read_since(date(2026, 11, 1))
    assert [asked.day for asked in found] == [date(2026, 11, 21), date(2026, 12, 1)]


async def test_all_processes_of_a_root_count_together(tmp_path: Path) -> None:
    desk = Desk(files=LocalFiles(tmp_path))
    config = SpendingConfig(daily_tokens=205, reply_tokens=10)
    one, other = desk.meter(config), desk.meter(config)
    assert await one.read_today() == await other.read_today() == SpendingTotal()
    await desk.ask(one, answer())
    await desk.ask(other, answer())
    assert (await one.read_today()).tokens == 200
    with pytest.raises(SpendingLimitReached):
        await desk.ask(one, answer())
    assert (await desk.meter(config).read_today()).tokens == (await other.read_today()).tokens == 200


async def test_a_request_that_is_being_made_counts_as_it_was_estimated() -> None:
    desk, waits = Desk(), Hanging()
    meter = desk.meter(SpendingConfig(daily_tokens=110, reply_tokens=10))
    long = [say("word " * 60)]
    async with anyio.create_task_group() as group:
        group.start_soon(meter.wrap(FakeModel(waits), "flush").complete, long)
        await waits.reached.wait()
        with pytest.raises(SpendingLimitReached):
            await meter.wrap(FakeModel(answer()), "flush").complete(long)
        group.cancel_scope.cancel()
    spent = await meter.read_today()
    assert (spent.requests, spent.failed, spent.tokens) == (1, 1, 0)
    assert await meter.find_refusal(tokens=70) == ""


async def test_a_request_that_fails_is_written_down_with_its_error_and_fails_as_it_did() -> None:
    desk = Desk()
    meter = desk.meter()
    with pytest.raises(ModelUnavailable):
        await desk.ask(meter, ModelUnavailable())
    [asked] = await SpendingJournal(desk.files).read_since(desk.clock.today())
    assert (asked.error, asked.total.failed) == ("ModelUnavailable", 1)


@pytest.mark.req("FC-CAP")
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_reply_that_can_not_be_used_counts_as_what_it_took(streamed: bool) -> None:
    desk, told, bare, none = Desk(), ReplyInvalid(), ReplyInvalid(), ReplyInvalid()
    told.reply, bare.reply = answer(), replace(reply("Of course."), usage=Usage())
    meter = desk.meter(SpendingConfig(daily_tokens=None, daily_cost=0.01))
    for error in (none, bare, told):
        model = meter.wrap(FakeModel(error), "flush")
        with pytest.raises(ReplyInvalid):
            _ = [each async for each in model.stream(ASK)] if streamed else await model.complete(ASK)
    nothing, first, second = await SpendingJournal(desk.files).read_since(desk.clock.today())
    assert (second.input, second.output, second.cost, second.error) == (90, 10, Decimal("0.01"), "ReplyInvalid")
    assert (first.input, first.output) == (estimate_request(ASK).total, estimate_message(bare.reply.message))
    assert (nothing.input, nothing.output) == (0, 0), "nothing came"
    assert (await meter.read_today()).unpriced == 1
    with pytest.raises(SpendingLimitReached):
        await desk.ask(meter, answer())


async def test_a_stream_counts_as_a_whole_reply_does() -> None:
    desk = Desk()
    meter = desk.meter()
    events = [event async for event in meter.wrap(FakeModel(answer()), "summary").stream(ASK)]
    assert isinstance(events[-1], ReplyFinished)
    assert await meter.read_today() == answer_spent()
    with pytest.raises(ModelUnavailable):
        [event async for event in meter.wrap(FakeModel(ModelUnavailable()), "summary").stream(ASK)]
    assert (await meter.read_today()).failed == 1


def answer_spent() -> SpendingTotal:
    return SpendingTotal(requests=1, input=90, output=10, cost=Decimal("0.01"))


async def test_what_a_provider_does_not_count_is_estimated() -> None:
    desk = Desk()
    meter = desk.meter()
    await desk.ask(meter, reply("It was said that we deploy only from main."))
    spent = await meter.read_today()
    assert spent.input >= 5
    assert spent.output >= 9


async def test_a_damaged_line_hides_no_other_and_a_full_disk_ends_no_request() -> None:
    desk = Desk()
    meter = desk.meter(SpendingConfig(daily_tokens=250, reply_tokens=10))
    await desk.ask(meter, answer())
    await desk.files.append("spending/2026-11.jsonl", b'{"day": "2026-11-21", "at": 3\n[]\n{"day": "x"}\n\xff\n')
    await desk.ask(meter, answer())
    assert (await desk.meter().read_today()).tokens == 200

    class Full(InMemoryFiles):
        async def append(self, path: str, data: bytes, *, header: bytes = b"") -> Any:
            raise StorageFull

    full = Desk(files=Full())
    counting = full.meter(SpendingConfig(daily_tokens=105, reply_tokens=10))
    await full.ask(counting, answer())
    with pytest.raises(SpendingLimitReached):
        await full.ask(counting, answer())


async def test_a_record_that_was_deleted_begins_anew() -> None:
    desk = Desk()
    meter = desk.meter()
    await desk.ask(meter, answer())
    assert (await meter.read_today()).requests == 1
    await desk.files.delete("spending/2026-11.jsonl")
    assert await meter.read_today() == SpendingTotal()
    await desk.ask(meter, answer())
    assert (await meter.read_today()).requests == 1


async def test_midnight_is_where_the_user_lives() -> None:
    desk = Desk()
    meter = desk.meter()
    await desk.ask(meter, answer())
    desk.clock.time = desk.clock.time - timedelta(days=1)
    assert await meter.read_today() == SpendingTotal()


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize(
    "given", [{"daily_tokens": -1}, {"daily_cost": -0.5}, {"daily_cost": float("nan")}, {"reply_tokens": 0}]
)
def test_a_limit_below_nothing_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(given))):
        SpendingConfig(**given)
