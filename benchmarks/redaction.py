"""How fast redaction is, in MB of text a second, beside a plain scan of the same text for one word.

    python benchmarks/redaction.py [file ...]

Without files it makes its own texts: prose, code, Chinese, a log with secrets. Times are the best of five.
"""

import random
import string
import sys
import time
from collections.abc import Callable
from pathlib import Path

from ricordo.guard import Redactor

_PROSE = "We talked about the release and agreed to deploy on Friday, after the tests had run for a day. "
_CODE = """def load(path: Path, limit: int = 4096) -> list[str]:
    # the token limit is checked by the caller
    return [line.rstrip() for line in path.read_text(encoding="utf-8").splitlines()][:limit]

class RequestHandlerWithRetries(BaseHandler):
    token_limit = settings.MAX_TOKENS_PER_REQUEST
"""
_CHINESE = "我们讨论了发布计划，并同意在测试运行一天之后于星期五部署。"
_BYTES = 1_000_000
_RUNS = 5


def main(files: list[str]) -> None:
    """Prints one line for each text."""
    redactor = Redactor(bytes(range(32)))
    texts = {name: Path(name).read_text(encoding="utf-8") for name in files} or _made()
    print(f"{'text':<24}{'MB':>7}{'scan MB/s':>12}{'redact MB/s':>13}{'marks':>8}")
    for name, text in texts.items():
        size = len(text.encode()) / 1e6
        scan = size / _best(lambda text=text: text.find("\x00never there\x00"))  # type: ignore[misc]
        redact = size / _best(lambda text=text: redactor.redact(text))  # type: ignore[misc]
        marks = len(redactor.redact(text).marks)
        print(f"{name[-24:]:<24}{size:>7.2f}{scan:>12.0f}{redact:>13.1f}{marks:>8}")


def _made() -> dict[str, str]:
    source = random.Random(1)

    def line() -> str:
        key = "ghp_" + "".join(source.choices(string.ascii_letters + string.digits, k=36))
        return _PROSE * 20 + f"password = {key[4:20]}9 and {key}\n"

    return {
        "prose": _PROSE * (_BYTES // len(_PROSE)),
        "prose, one message": _PROSE * 10,
        "code": _CODE * (_BYTES // len(_CODE)),
        "chinese": _CHINESE * (_BYTES // len(_CHINESE.encode())),
        "a secret in 2 KB": "".join(line() for _ in range(_BYTES // 2_000)),
    }


def _best(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return max(min(times), 1e-9)


if __name__ == "__main__":
    main(sys.argv[1:])
