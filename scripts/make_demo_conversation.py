"""Write the long test log of the demo conversation.

The conversation in `src/ricordo/cli/demo_data` is written by hand, but for one tool result: the log of a failed test
run, more than 200 KB of text with one failure deep inside. It is made here, the same to the byte each time.

Run: python scripts/make_demo_conversation.py
"""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

__all__ = ["CONVERSATION", "FAILED", "LOG_CALL", "run_log"]

CONVERSATION = Path(__file__).parent.parent / "src" / "ricordo" / "cli" / "demo_data" / "conversation.jsonl"
LOG_CALL = "call_028"
FAILED = 1474
_TESTS = 1560
_START = datetime(2026, 10, 22, 6, 30, 28, 118_000, tzinfo=UTC)
_AREAS = (
    ("addresses/address", "an address"),
    ("imports/monolith", "an order of the monolith"),
    ("orders/cancel", "a cancelled order"),
    ("orders/list", "a page of orders"),
    ("orders/place", "an order"),
    ("orders/ship", "a parcel"),
    ("prices/delivery", "a delivery charge"),
    ("prices/voucher", "a voucher"),
    ("stock/hold", "a hold"),
    ("stock/reservation", "a reservation"),
)
_CONDITIONS = (
    "with one line",
    "with 60 lines",
    "from a guest",
    "from a trade customer",
    "for Northern Ireland",
    "for the Channel Islands",
    "placed at midnight",
    "placed in the hour that summer time takes away",
    "with a bulky item",
    "with a preorder",
    "with a gift note of 500 characters",
    "after the price has changed",
    "after the item was withdrawn",
)
_OUTCOMES = (
    "keeps its currency and its pence",
    "is the same when it is sent twice",
    "is refused with 422 and says which field",
    "survives a restart of the service",
    "shows up in the list within one second",
    "can be read back unchanged",
    "leaves no row behind when the transaction fails",
    "is written to the audit table once",
)
_SETUP = (
    "##[group]Run actions/checkout@v4",
    "Syncing repository: fulfilment/orders-api",
    "HEAD is now at 5d20e7b Read reports from the replica (#50)",
    "##[endgroup]",
    "##[group]Run pnpm install --frozen-lockfile",
    "Lockfile is up to date, resolution step is skipped",
    "Progress: resolved 188, reused 188, downloaded 0, added 188, done",
    "Done in 3.9s",
    "##[endgroup]",
    "##[group]Run pnpm test",
    "> orders-api@ pretest /builds/fulfilment/orders-api",
    "> docker compose up -d --wait db",
    " Container orders-api-db-1  Healthy",
    "> orders-api@ test /builds/fulfilment/orders-api",
    "> node --import tsx --test --test-reporter=tap tests/",
    "TAP version 13",
)
_FAILURE = (
    f"not ok {FAILED} - stock/reservation › two customers at once never reserve more than there is",
    "  ---",
    "  duration_ms: 1893.41",
    "  location: '/builds/fulfilment/orders-api/tests/stock/reservation.test.ts:71:1'",
    "  failureType: 'testCodeFailure'",
    "  error: |-",
    "    Property failed after 38 tests",
    '    { seed: 417733, path: "37:2:1", endOnFailure: true }',
    '    Counterexample: [{"onHand":1,"wanted":[1,1],"pauseMs":[0,3]}]',
    "    Shrunk 2 time(s)",
    "    Got AssertionError: reserved 2 of 1",
    "  code: 'ERR_TEST_FAILURE'",
    "  ...",
)
_SUMMARY = (
    f"1..{_TESTS}",
    f"# tests {_TESTS}",
    f"# pass {_TESTS - 1}",
    "# fail 1",
    "# duration_ms 71844.19",
    "##[error]Process completed with exit code 1.",
)


def run_log() -> str:
    """Return the log of the failed run: one line for each test, the details of the failure at its place."""
    tests = [line for number in range(1, _TESTS + 1) for line in _test(number)]
    lines = [*_SETUP, *tests, *_SUMMARY]
    return "\n".join(_stamped(position, line) for position, line in enumerate(lines))


def _test(number: int) -> tuple[str, ...]:
    if number == FAILED:
        return _FAILURE
    area, subject = _AREAS[number * len(_AREAS) // (_TESTS + 1)]
    condition, outcome = _CONDITIONS[number % len(_CONDITIONS)], _OUTCOMES[number % len(_OUTCOMES)]
    return (f"ok {number} - {area} › {subject} {condition} {outcome}",)


def _stamped(position: int, line: str) -> str:
    # a step of 45.5 ms with a wobble gives the length of the run without looking like a ruler
    time = _START + timedelta(milliseconds=45.5 * position + 7 * (position * 31 % 11))
    return f"test\tRun pnpm test\t{time.isoformat(timespec='milliseconds').replace('+00:00', 'Z')} {line}"


def _main() -> None:
    records = [json.loads(line) for line in CONVERSATION.read_text(encoding="utf-8").splitlines()]
    for record in records:
        if record.get("tool_call_id") == LOG_CALL:
            record["content"] = run_log()
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    CONVERSATION.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _main()
