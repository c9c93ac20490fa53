"""A rule is saved with a memory by a person, who is told what is wrong with it."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from ricordo import Memory, Scope
from ricordo.errors import InvalidEntry
from ricordo.runtime.sync import SyncMemory

pytestmark = pytest.mark.req("CC-ENFORCE")

Opened = Callable[..., AbstractAsyncContextManager[Memory]]
RULE = "deny shell(git push --force*)"
SECRET = "AKIA" + "Q7ZP4MX2WT6RB3KD"


@pytest.mark.anyio
async def test_a_memory_keeps_the_rule_that_it_was_saved_with(opened: Opened) -> None:
    async with opened() as memory:
        saved = await memory.remember("Never force-push.", rule=RULE)
        assert saved.rule == RULE
    async with opened() as memory:
        assert [entry.rule for entry in await memory.entries()] == [RULE]
        assert [hit.entry.rule for hit in await memory.recall("force-push")] == [RULE]
        preamble = await memory.preamble()
    assert "Never force-push." in preamble
    assert "git push" not in preamble


@pytest.mark.anyio
@pytest.mark.parametrize("rule", ["allow shell(git push*)", "never", f"deny shell(curl *{SECRET}*)"])
async def test_a_rule_that_permits_is_none_or_holds_a_secret_is_refused_and_nothing_is_saved(
    opened: Opened, rule: str
) -> None:
    async with opened() as memory:
        with pytest.raises(InvalidEntry):
            await memory.remember("Never force-push.", rule=rule)
        assert await memory.entries() == []


def test_programs_that_do_not_await_save_rules_too(tmp_path: Path) -> None:
    with SyncMemory.open(tmp_path, scope=Scope(user="me", project="shop")) as memory:
        assert memory.remember("Never force-push.", rule=RULE).rule == RULE
