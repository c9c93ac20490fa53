"""A folder that can't be read is told in a sentence by every command, and by the library in an error of its own."""

import errno
import os
from pathlib import Path

import pytest

from command_line import ricordo
from ricordo.errors import StorageFailed
from ricordo.runtime.roots import default_root


@pytest.mark.parametrize("command", [("chat", "Where is staging?"), ("recall", "staging"), ("doctor",)])
def test_a_root_that_can_not_be_read_ends_a_command_with_a_sentence(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    ricordo("remember", "We use uv.")
    looked = Path.is_file

    def is_file(path: Path) -> bool:
        if path.parent.name == ".ricordo":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return looked(path)

    monkeypatch.setattr(Path, "is_file", is_file)
    done = ricordo(*command)
    assert done.code == 1
    assert "Permission denied" in done.err
    assert "Traceback" not in done.err
    with pytest.raises(StorageFailed, match="can't be read"):
        default_root()
