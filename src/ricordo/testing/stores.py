"""What every store has to do, as a class for pytest and as checks that need no test framework.

    class TestMyStore(StoreConformance):
        address = "mine:{folder}"

Each check opens the store in a folder of its own and raises `AssertionError` with a sentence when it does not do what
it has to. What a store declares of itself stands in `StoreSubject`; checks that do not apply to it are skipped, with
the reason.
"""

from collections.abc import Callable
from pathlib import Path
from unittest import SkipTest

import anyio

from ricordo.testing.store_keeping import SAVING_CHECKS
from ricordo.testing.store_recalling import RECALL_CHECKS
from ricordo.testing.store_subject import StoreCheck, StoreSubject
from ricordo.testing.store_trouble import FAILURE_CHECKS

__all__ = ["STORE_CHECKS", "StoreCheck", "StoreConformance"]

STORE_CHECKS: tuple[StoreCheck, ...] = (*SAVING_CHECKS, *RECALL_CHECKS, *FAILURE_CHECKS)
"""Every check, each for a folder of its own: `await check(subject, folder)`."""


class StoreConformance(StoreSubject):
    """A test for each check, to be subclassed as `class TestMyStore(StoreConformance)` at the top of a module.

    The tests run under pytest with no plugin: each takes `tmp_path` and runs an event loop.
    """


def _make_test(check: StoreCheck) -> Callable[[StoreSubject, Path], None]:
    def test(self: StoreSubject, tmp_path: Path) -> None:
        reason = self.skip_reason(check.needs)
        if reason:
            raise SkipTest(reason)
        anyio.run(check, self, tmp_path)

    test.__name__ = f"test_{check.name}"
    test.__doc__ = check.sentence
    return test


for _check in STORE_CHECKS:
    setattr(StoreConformance, f"test_{_check.name}", _make_test(_check))
