"""What tests of the command line share."""

import pytest


@pytest.fixture
def time_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what is learned at the end of a command take as long as it takes on a busy machine."""
    monkeypatch.setenv("RICORDO_FLUSH__CLOSING_SECONDS", "40")
