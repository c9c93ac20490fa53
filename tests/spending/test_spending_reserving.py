"""The limit of a day holds: what a request may take is reserved before it is made, for every process to see."""

import json
import os
import tempfile
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fake_models import FakeModel, reply, say
from hand_clock import HandClock
from ricordo.errors import SpendingLimitReached, StorageBusy, StorageFull
from ricordo.messages import Usage
from ricordo.models import SpendingConfig, SpendingMeter, limit_replies
from ricordo.models.spending import MIN_REPLY_ALLOWANCE, SpendingJournal, SpendingTotal, max_reply_tokens
from ricordo.models.wrappers import RetryingModel, TimedModel
from ricordo.storage.local import LocalFiles
from ricordo.testing import InMemoryFiles, Say, ScriptedModel
from warm_processes import WarmProcess

pytestmark = [pytest.mark.anyio, pytest.mark.req("FC-CAP")]

ASK = [say("What was said?")]
ENDLESS = "word " * 3_000
_ASKING = """
import sys, anyio
from pathlib import Path
from ricordo.clock import SystemClock
from ricordo.errors import SpendingLimitReached
from ricordo.storage.local import LocalFiles
from ricordo.messages import Message, Text
from ricordo.models.spending import SpendingMeter
from ricordo.models.config import SpendingConfig
from ricordo.testing import Say, ScriptedModel

async def ask(root, cap):
    config = SpendingConfig(daily_tokens=int(cap), reply_tokens=1_500)
    meter = SpendingMeter(LocalFiles(Path(root)), config, SystemClock())
    model = meter.wrap(ScriptedModel(lambda _: Say("word " * 2_000)), "flush")
    made = 0
    while True:
        try:
            await model.complete([Message(role="user", parts=(Text(text="What was said? " * 20),))])
        except SpendingLimitReached:
            return print(made)
        made += 1

anyio.run(ask, *sys.argv[1:])
"""


def meter(files: Any, **config: Any) -> SpendingMeter:
    return SpendingMeter(files, SpendingConfig(**{"daily_cost": None, **config}), HandClock())


def rows(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in (root / "spending").iterdir() for line in path.read_text().splitlines()]


counts = st.integers(0, 4_000)


@given(used=counts, reserved=counts, prompt=counts, limit=st.integers(0, 15_000), reply=st.integers(1, 9_000))
@example(used=1_000, reserved=3_000, prompt=500, limit=6_000, reply=8_000)
def test_what_a_request_is_allowed_never_passes_the_limit(
    used: int, reserved: int, prompt: int, limit: int, reply: int
) -> None:
    spent, config = SpendingTotal(input=used, reserved=reserved), SpendingConfig(daily_tokens=limit, reply_tokens=reply)
    allowed = max_reply_tokens(spent, config, prompt=prompt)
    assert 0 <= allowed <= reply
    assert allowed == 0 or (used + reserved + prompt + allowed <= limit and allowed >= min(MIN_REPLY_ALLOWANCE, reply))
    if used + reserved + prompt + reply <= limit:
        assert allowed == reply


def test_two_processes_that_ask_as_long_as_they_may_stay_under_the_limit(tmp_path: Path) -> None:
    cap = 12_000
    with tempfile.TemporaryFile() as out, open(os.devnull, "rb") as nothing:
        streams = (nothing.fileno(), out.fileno(), 2)
        given = ["python", "-c", _ASKING, str(tmp_path), str(cap)]
        processes = [WarmProcess(given, streams=streams) for _ in range(2)]
        assert [process.wait(60) for process in processes] == [0, 0]
        out.seek(0)
        made = sum(map(int, out.read().split()))
    told = [row for row in rows(tmp_path) if "model" in row]
    assert len(told) == made >= 6
    assert cap - MIN_REPLY_ALLOWANCE - 200 <= sum(row["input"] + row["output"] for row in told) <= cap
    assert not [row for row in told if "over" in row or "error" in row]


async def test_many_requests_at_once_stay_under_the_limit_together() -> None:
    class Slow(InMemoryFiles):
        async def read_from(self, path: str, offset: int, length: int | None = None) -> bytes:
            data = await super().read_from(path, offset, length)
            await anyio.sleep(0.001)
            return data

    files = Slow()
    asking = [meter(files, daily_tokens=5_000, reply_tokens=1_000) for _ in range(2)]
    refused = 0

    async def ask(one: SpendingMeter) -> None:
        nonlocal refused
        try:
            await one.wrap(ScriptedModel([Say(ENDLESS)]), "flush").complete(ASK)
        except SpendingLimitReached:
            refused += 1

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(ask, asking[number % 2])
    spent = await asking[0].read_today()
    assert (spent.requests + refused, spent.reserved) == (20, 0)
    assert 4_000 < spent.tokens <= 5_000


async def test_a_reply_is_no_longer_than_what_is_left_of_the_day() -> None:
    one = meter(InMemoryFiles(), daily_tokens=2_000, reply_tokens=1_200)
    model = ScriptedModel([Say(ENDLESS), Say(ENDLESS)])
    metered = one.wrap(model, "flush")
    first, second = await metered.complete(ASK), await metered.complete(ASK)
    assert model.requests[0].reply_limit == 1_200
    assert MIN_REPLY_ALLOWANCE <= (model.requests[1].reply_limit or 0) < 800
    assert (first.stop, second.stop) == ("length", "length")
    with pytest.raises(SpendingLimitReached, match=r"tokens are used, and this would take about \d+"):
        await metered.complete(ASK)
    assert (await one.read_today()).tokens <= 2_000


async def test_a_stream_is_limited_and_settled_as_a_whole_reply_is() -> None:
    one = meter(InMemoryFiles(), daily_tokens=2_000, reply_tokens=700)
    model = ScriptedModel([Say(ENDLESS)])
    async for _ in one.wrap(model, "flush").stream(ASK):
        assert 700 < (await one.read_today()).reserved + (await one.read_today()).tokens < 720
    spent = await one.read_today()
    assert (model.requests[0].reply_limit, spent.reserved, spent.over) == (700, 0, 0)


async def test_a_model_that_takes_more_than_it_was_allowed_is_told_of_in_the_record(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    one = meter(files, daily_tokens=10_000, reply_tokens=600)
    await one.wrap(ScriptedModel([Say("Yes.", usage=Usage(input=10, output=900))]), "flush").complete(ASK)
    spent = await one.read_today()
    assert spent.tokens == 910
    assert 280 < spent.over < 310
    assert [row["over"] for row in rows(tmp_path) if "model" in row] == [spent.over]
    assert (await meter(files, daily_tokens=10_000).read_today()).over == spent.over


async def test_what_a_killed_process_had_reserved_counts_to_the_end_of_its_day() -> None:
    files, clock = InMemoryFiles(), HandClock()
    config = SpendingConfig(daily_tokens=2_000, daily_cost=None, reply_tokens=1_000)
    killed = SpendingMeter(files, config, clock)
    allowed = await killed.reserve(killed.create_request("m", "flush", None), 400)
    other = SpendingMeter(files, config, clock)
    assert (await other.read_today()).reserved == allowed.max_tokens == 1_500
    with pytest.raises(SpendingLimitReached, match=r"0 of 2,000 tokens are used and 1,500 reserved"):
        await other.wrap(ScriptedModel([Say("Yes.")]), "flush").complete(ASK)
    clock.turn(days=1)
    assert await other.read_today() == SpendingTotal()
    await other.wrap(ScriptedModel([Say("Yes.")]), "flush").complete(ASK)


async def test_a_request_that_fails_gives_back_what_was_reserved() -> None:
    one = meter(InMemoryFiles(), daily_tokens=2_000, reply_tokens=1_000)
    for _ in range(5):
        with pytest.raises(StorageBusy):
            await one.wrap(FakeModel(StorageBusy()), "flush").complete(ASK)
    assert await one.read_today() == SpendingTotal(requests=5, failed=5)


async def test_where_nothing_can_be_written_the_limit_holds_in_this_process() -> None:
    class Full(InMemoryFiles):
        async def append(self, path: str, data: bytes, *, header: bytes = b"") -> Any:
            raise StorageFull

    one = meter(Full(), daily_tokens=3_000, reply_tokens=1_000)
    model = ScriptedModel(lambda _: Say(ENDLESS))
    begun = await one.reserve(one.create_request("m", "flush", None), 100)
    assert (await one.read_today()).reserved == begun.max_tokens
    await one.record_request(replace(begun.record, error="Cancelled"))
    for _ in range(3):
        await one.wrap(model, "flush").complete(ASK)
    with pytest.raises(SpendingLimitReached):
        await one.wrap(model, "flush").complete(ASK)
    assert (await one.read_today()).tokens <= 3_000


@dataclass
class Told:
    """A model that notes how long its replies may get."""

    name: str = "told"
    window: int | None = None
    limits: list[int] = field(default_factory=list)

    def with_reply_limit(self, tokens: int) -> "Told":
        self.limits.append(tokens)
        return self

    async def complete(self, messages: Any, **_: Any) -> Any:
        return replace(reply("Yes."), cost=Decimal(0))

    def stream(self, messages: Any, **_: Any) -> Any:
        raise NotImplementedError


async def test_a_limit_reaches_the_model_inside_of_others_and_none_where_it_can_not_be_told() -> None:
    told = Told()
    around = RetryingModel(model=TimedModel(model=told, seconds=5, stall_seconds=5))
    await meter(InMemoryFiles(), reply_tokens=600).wrap(around, "flush").complete(ASK)
    assert told.limits == [600]
    plain = FakeModel(reply("Yes."))
    assert limit_replies(plain, 5) is plain


async def test_an_old_record_without_reservations_is_read_and_old_readers_pass_over_new_lines(tmp_path: Path) -> None:
    files, clock = LocalFiles(tmp_path), HandClock()
    day = clock.today().isoformat()
    old = f'{{"at":"x","day":"{day}","purpose":"flush","model":"m","input":5,"output":5}}\n'
    await files.append(f"spending/{day[:7]}.jsonl", old.encode())
    one = SpendingMeter(files, SpendingConfig(), clock)
    await one.wrap(ScriptedModel([Say("Yes.")]), "flush").complete(ASK)
    assert (await one.read_today()).requests == 2
    assert len(await SpendingJournal(files).read_since(clock.today())) == 2
    assert [sorted(row) for row in rows(tmp_path) if "reserved" in row] == [["at", "day", "id", "reserved"]]
