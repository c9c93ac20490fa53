"""The conformance suite finds what is wrong with a store, and nothing wrong with a sound one."""

from pathlib import Path

import pytest

from faulty_stores import HELD_FAULTS, LINES_FAULTS, Held, HeldDriver, Lines, LosesAll
from ricordo.errors import RicordoError
from ricordo.testing import STORE_CHECKS, StoreCheck, StoreConformance

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-plug")]


def named(beginning: str) -> StoreCheck:
    [found] = [check for check in STORE_CHECKS if check.name.startswith(beginning)]
    return found


async def found_by(check: StoreCheck, subject: StoreConformance, folder: Path) -> str:
    """Return what the check says is wrong, empty for nothing."""
    try:
        await check(subject, folder)
    except (AssertionError, RicordoError) as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "check",
    [
        check
        for check in STORE_CHECKS
        if check.invariant not in {"I7", "I8", "I9"} and not Held().skip_reason(check.needs)
    ],
    ids=lambda check: check.name,
)
async def test_a_sound_store_passes(check: StoreCheck, tmp_path: Path) -> None:
    await check(Held(), tmp_path)


@pytest.mark.parametrize("kind", HELD_FAULTS, ids=lambda kind: kind.__name__)
async def test_a_fault_is_found_by_the_check_that_speaks_of_it(kind: type[HeldDriver], tmp_path: Path) -> None:
    faulty = type(kind.__name__, (Held,), {"driver": kind})
    assert (await found_by(named(HELD_FAULTS[kind]), faulty(), tmp_path)).startswith("A store: ")


async def test_a_store_that_loses_all_when_it_is_closed_is_found_out(tmp_path: Path) -> None:
    assert "lost" in await found_by(named("what_was_saved_comes_out"), LosesAll(), tmp_path)


@pytest.mark.parametrize("beginning", sorted(set(LINES_FAULTS.values())))
async def test_a_sound_store_of_lines_passes(beginning: str, tmp_path: Path) -> None:
    await named(beginning)(Lines(), tmp_path)


@pytest.mark.parametrize("kind", LINES_FAULTS, ids=lambda kind: kind.__name__)
async def test_a_fault_on_disk_is_found_by_the_check_that_speaks_of_it(kind: type[Lines], tmp_path: Path) -> None:
    assert await found_by(named(LINES_FAULTS[kind]), kind(), tmp_path)
