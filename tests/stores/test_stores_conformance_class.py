"""The class of the conformance suite under pytest, the stores of others, and what is told of a store."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from faulty_stores import Held
from ricordo.errors import InvalidSetting
from ricordo.testing import BUILT_IN_STORES, STORE_CHECKS, StoreCheck, StoreConformance
from ricordo.testing.store_conformance import checks_table, conformance_table, list_capabilities
from source_tree import ROOT
from three_methods import ThirdParty

pytestmark = [pytest.mark.anyio, pytest.mark.req("GO-BK-plug")]

APPLYING = [check for check in STORE_CHECKS if not ThirdParty().skip_reason(check.needs)]


@pytest.mark.req("GO-BK-plug")
@pytest.mark.parametrize("check", APPLYING, ids=lambda check: check.name)
async def test_a_backend_of_one_module_with_three_methods_passes(check: StoreCheck, tmp_path: Path) -> None:
    await check(ThirdParty(), tmp_path)


def test_pytest_alone_runs_a_test_for_each_check(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "from ricordo.testing import StoreConformance\n"
        "class TestNothing(StoreConformance):\n    address, keeps, capacity = 'none:', False, 0\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:anyio", "-rs", "-q", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    applying = sum(not BUILT_IN_STORES["none"]().skip_reason(check.needs) for check in STORE_CHECKS)
    assert f"{applying} passed, {len(STORE_CHECKS) - applying} skipped" in done.stdout
    assert "it keeps nothing" in done.stdout


async def test_a_suite_without_an_address_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="address"):
        async with StoreConformance().open_store(tmp_path):
            pass


async def test_a_capability_that_is_declared_has_to_be_there(tmp_path: Path) -> None:
    forgetting = next(check for check in STORE_CHECKS if check.invariant == "I10")
    assert await list_capabilities(ThirdParty(), tmp_path) == ()
    await forgetting(ThirdParty(), tmp_path)
    declared = ThirdParty()
    declared.forgets = True  # type: ignore[misc]
    with pytest.raises(AssertionError, match="declares"):
        await forgetting(declared, tmp_path)
    assert await list_capabilities(Held(), tmp_path) == ("Lists", "Forgets", "KeepsTombstones")


def test_the_table_has_a_row_for_each_store_and_a_reason_for_what_is_left_out() -> None:
    table = conformance_table(BUILT_IN_STORES)
    rows = {found[1]: found[0] for found in re.finditer(r"^\| `(\w+)` \|.*$", table, re.MULTILINE)}
    assert rows.keys() == BUILT_IN_STORES.keys()
    assert re.search(r"`none`: .*I7.*it keeps nothing", table)
    assert "-" not in rows["jsonl"].split(" | ")[1:13]
    assert all(check.sentence in checks_table() for check in STORE_CHECKS)


def test_the_suite_needs_no_pytest() -> None:
    code = "import sys, ricordo.testing; sys.exit('pytest' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
