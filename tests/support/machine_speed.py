"""How slow this machine is, measured by a small computation that is always the same.

Limits of processor time are stretched by it: what a normal machine does in time must not fail on a slow or busy one.
"""

import time

__all__ = ["slowness"]

_NORMAL_SECONDS = 0.002
"""The processor time that `_compute` takes on a normal machine."""


def slowness(times: int = 5) -> float:
    """Return how many times as long this machine takes as a normal one: at least 1, the slowest of so many `times`."""
    return max(1.0, *(_measured() / _NORMAL_SECONDS for _ in range(times)))


def _measured() -> float:
    begun = time.thread_time()
    _compute()
    return time.thread_time() - begun


def _compute() -> int:
    """Do what the package does most: make, split, look up, and sort short texts."""
    texts = [f"the number of {number % 97} is {number}" for number in range(2_000)]
    found: dict[str, int] = {}
    for text in texts:
        for word in text.split():
            found[word] = found.get(word, 0) + 1
    return len(sorted(found, key=lambda word: (-found[word], word)))
