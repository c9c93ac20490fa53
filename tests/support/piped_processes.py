"""Warm processes that are talked to through pipes, as `subprocess.Popen` would with all three of them and text.

A script finds the helpers of the tests on its path, and begins without waiting for an interpreter.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from warm_processes import WarmProcess

__all__ = ["PipedProcess", "start_code", "start_script"]

_SUPPORT = Path(__file__).parent
_SCRIPT = f"""
import runpy, sys
sys.path[:] = [sys.argv[1].rpartition("/")[0], {str(_SUPPORT)!r}, *sys.path[1:]]
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class PipedProcess(WarmProcess):
    """A process with a pipe to its input and one from its output; its errors are kept until somebody asks."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """Begin it, with the environment and in the folder of now."""
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self.stdin = os.fdopen(ours_in, "w", encoding="utf-8")
        self.stdout = os.fdopen(ours_out, encoding="utf-8")
        super().__init__(arguments, streams=(theirs_in, theirs_out, self._errors.fileno()))
        os.close(theirs_in)
        os.close(theirs_out)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Wait for its end, or end it where the block failed, and close the pipes."""
        if kind is not None:
            self.kill()
        super().__exit__(kind, error, at)
        self.close()

    def told(self) -> str:
        """Return the errors that it has printed so far."""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8")

    def communicate(self, given: str = "", timeout: float | None = None) -> tuple[str, str]:
        """Give it this and nothing more, and return its output and its errors when it has ended."""
        self.stdin.write(given)
        self.stdin.close()
        out = self.stdout.read()
        self.wait(timeout)
        errors = self.told()
        self.close()
        return out, errors

    def close(self) -> None:
        """Close the pipes."""
        for file in (self.stdin, self.stdout, self._errors):
            file.close()


def start_code(code: str, *arguments: object) -> PipedProcess:
    """Begin a process of Python code, with these arguments."""
    return PipedProcess(["python", "-c", code, *map(str, arguments)])


def start_script(script: Path, *arguments: object) -> PipedProcess:
    """Begin a process of a script, with these arguments."""
    return start_code(_SCRIPT, script, *arguments)
