"""Every store of Ricordo does what the public conformance suite holds every store to."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

import pytest

from ricordo.stores import SCHEMES
from ricordo.testing import BUILT_IN_STORES, STORE_CHECKS, StoreCheck

pytestmark = pytest.mark.anyio

_T = TypeVar("_T", bound=Callable[..., object])
_SEVERAL = frozenset({"json", "kv", "layered", "sessions"})
"""Stores that write each in a way of its own; those that are left out write as one of them does, and are soaked."""


def for_every_store(*invariants: str, only: Collection[str] = BUILT_IN_STORES) -> Callable[[_T], _T]:
    """Run a test for each store, or `only` these, and each check of these invariants that applies to it."""
    cases = [
        pytest.param(scheme, check, id=f"{scheme}-{check.name}")
        for scheme, kind in BUILT_IN_STORES.items()
        for check in STORE_CHECKS
        if scheme in only and check.invariant in invariants and not kind().skip_reason(check.needs)
    ]
    return pytest.mark.parametrize(("scheme", "check"), cases)


async def held(scheme: str, check: StoreCheck, folder: Path) -> None:
    await check(BUILT_IN_STORES[scheme](), folder)


@pytest.mark.req("GO-I1", "GO-I2", "GO-I5", "GO-I6", "GO-I7", "GO-I9", "GO-I11", "GO-I12", "GO-SWAP")
def test_no_store_and_no_check_is_left_out() -> None:
    assert set(BUILT_IN_STORES) == set(SCHEMES)
    claimed = {"G1", "I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12"}
    assert {check.invariant for check in STORE_CHECKS} == claimed | {"capacity", "fence", "privacy", "scope"}
    assert len({check.name for check in STORE_CHECKS}) == len(STORE_CHECKS)


@pytest.mark.req("GO-G1", "GO-BK-bm25", "GO-BK-jsonl", "GO-BK-kv", "GO-BK-md", "GO-BK-mock", "GO-BK-vector")
@for_every_store("G1")
async def test_time_id_and_scope_are_given(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req(
    "GO-I1", "GO-D14", "GO-G1", "GO-BK-bm25", "GO-BK-jsonl", "GO-BK-kv", "GO-BK-md", "GO-BK-mock", "GO-BK-vector"
)
@for_every_store("I1")
async def test_what_is_saved_comes_out_as_it_was(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req(
    "GO-I2", "GO-I3", "GO-BK-bm25", "GO-BK-jsonl", "GO-BK-kv", "GO-BK-md", "GO-BK-mock", "GO-BK-vector", "GO-I12"
)
@for_every_store("I2", "I3")
async def test_a_recall_has_its_limit_its_order_and_no_case(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req(
    "AS-BUG-22",
    "AS-BUG-24",
    "GO-G4-scale",
    "GO-BK-bm25",
    "GO-BK-jsonl",
    "GO-BK-kv",
    "GO-BK-md",
    "GO-BK-mock",
    "GO-BK-vector",
)
@for_every_store("I4", "fence")
async def test_the_preamble_has_its_budget_and_its_fence(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req("GO-I5", "GO-G1")
@for_every_store("I5")
async def test_kinds_and_fields_are_kept(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req("GO-I6", "GO-D9")
@for_every_store("I6", only=_SEVERAL)
async def test_saves_at_one_time_are_all_kept(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req("GO-G6", "GO-D1", "GO-I7", "GO-D9")
@for_every_store("I7")
async def test_a_kill_loses_nothing_that_was_saved(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req("GO-BK-jsonl", "GO-D7", "GO-I5")
@for_every_store("I8")
async def test_damaged_and_foreign_files_take_nothing_with_them(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req("GO-I9")
@for_every_store("I9")
async def test_a_bad_disk_is_a_typed_error(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req("HE-O-audit-forget", "GO-I10")
@for_every_store("I10")
async def test_what_is_forgotten_is_gone_and_leaves_a_record(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req("GO-D13", "HE-O-audit-forget")
@for_every_store("capacity", "privacy", "scope")
async def test_what_may_not_stay_is_gone(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req("GO-I11", "GO-I2")
@for_every_store("I11")
async def test_others_change_nothing_that_one_sees(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req("GO-I12", "GO-I2")
@for_every_store("I12")
async def test_the_order_is_that_of_saving(scheme: str, check: StoreCheck, tmp_path: Path) -> None:
    await held(scheme, check, tmp_path)


@pytest.mark.req("GO-I6", "GO-I7", "GO-G6")
@pytest.mark.soak
@pytest.mark.timeout(900)
@for_every_store("I4", "I6", "I7")
async def test_many_saves_of_two_processes_and_a_kill_at_every_step_lose_nothing(
    scheme: str, check: StoreCheck, tmp_path: Path
) -> None:
    subject = BUILT_IN_STORES[scheme]()
    subject.save_count, subject.kill_count, subject.sessions, subject.turns = 200, 10_000, 30, 50
    await check(subject, tmp_path)
