"""A process that is forked with everything imported is to a test what a real one is."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ricordo
from warm_processes import WarmProcess, executables, run_warm

_FOUND = """
import json, os, signal, sys, tempfile, threading, time
found = {"argv": sys.argv, "path": sys.path, "name": __name__, "main": dir(sys.modules["__main__"])}
found["folder"], found["environment"] = os.getcwd(), sorted(os.environ.items())
found["temporary"], found["zone"], found["threads"] = tempfile.gettempdir(), time.tzname, threading.active_count()
for name in ("stdin", "stdout", "stderr"):
    stream = getattr(sys, name)
    found[name] = [stream.name, stream.mode, stream.encoding, stream.errors, stream is getattr(sys, f"__{name}__")]
    found[name] += [stream.line_buffering, stream.write_through]
found["signals"] = [str(signal.getsignal(each)) for each in range(1, 32)]
found["inherited"] = []
for number in range(3, 64):
    try:
        found["inherited"] += [number] * os.get_inheritable(number)
    except OSError:
        pass
print(json.dumps(found))
"""


def _real(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_it_finds_what_a_new_process_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("here").mkdir()
    for name, value in (("TZ", "Asia/Tokyo"), ("RICORDO_MODEL", "a:b"), ("TMPDIR", str(Path("here").absolute()))):
        monkeypatch.setenv(name, value)
    real, warm = (
        json.loads(done.stdout)
        for done in (_real("-c", _FOUND, "a", "ü"), run_warm(["python", "-c", _FOUND, "a", "ü"]))
    )
    assert warm == real


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit",
        "raise SystemExit(3)",
        "raise SystemExit('a reason')",
        "import os; os._exit(7)",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import atexit; atexit.register(print, 'last'); print('first')",
        "import threading, time; threading.Thread(target=lambda: (time.sleep(0.01), print('later'))).start()",
        "import sys; sys.stdout.write('no end of line')",
        "print(input())",
        "1 / 0",
        "raise KeyboardInterrupt",
    ],
)
def test_it_ends_as_a_new_process_ends(code: str) -> None:
    real, warm = _real("-c", code), run_warm(["python", "-c", code])
    assert (warm.returncode, warm.stdout) == (real.returncode, real.stdout)
    assert warm.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


def test_it_is_the_process_of_its_id_and_a_kill_ends_it() -> None:
    readable, writable = os.pipe()
    with open(os.devnull, "rb") as nothing:
        code = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
        process = WarmProcess(["python", "-c", code], streams=(nothing.fileno(), writable, 2))
    os.close(writable)
    with os.fdopen(readable) as told:
        assert int(told.readline()) == process.pid
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
        assert told.read() == ""


def test_what_one_leaves_behind_in_memory_the_next_one_does_not_find() -> None:
    code = "import ricordo, os; print(hasattr(ricordo, 'left')); ricordo.left = os.environ['LEFT'] = 'yes'"
    assert [run_warm(["python", "-c", code]).stdout for _ in range(2)] == ["False\n"] * 2


def test_the_executable_of_a_shell_reads_writes_and_ends_as_the_command_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(executables()), prepend=os.pathsep)
    script = (
        "ricordo --version; echo 'Müller mag 猫' | ricordo remember - && ricordo recall Müller; ricordo memory nosuch"
    )
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.startswith(f"ricordo {ricordo.__version__}\n")
    assert "1. Müller mag 猫\n" in done.stdout
    assert done.returncode == 2
    assert "nosuch" in done.stderr
