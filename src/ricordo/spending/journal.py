"""The record of the requests of memory: one line of JSON for each, in a file for each month, below `spending/`.

It holds names and numbers and never content. Every process of a root appends to it and reads what others appended, so
all of them know what was spent. Before a request stands a line that reserves the most it may take; the line of the
request settles it. What nobody settles, as its process died, stays reserved to the end of its day: it may have been
spent. Invariant: a line that is torn or damaged hides no other.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation

from ricordo.errors import FileMissing
from ricordo.files import FileStore
from ricordo.messages.jsontext import decode_json
from ricordo.spending.plan import SpendingTotal

__all__ = ["SPENDING_FOLDER", "RequestRecord", "Reservation", "SpendingJournal"]

SPENDING_FOLDER = "spending"
"""Where the files lie, below the root."""


@dataclass(frozen=True, kw_only=True)
class RequestRecord:
    """One request: on which day of the user's calendar, what for (`purpose`), of which model and for whom.

    `input` and `output` are tokens, `cost` is in US dollars, None where the price is not known. `error` is the type of
    the error of one that gave no answer, or none that can be used. `over` are the tokens beyond what was reserved,
    `settles` names that line.
    """

    day: date
    at: str
    purpose: str
    model: str
    input: int = 0
    output: int = 0
    cost: Decimal | None = None
    user: str = ""
    agent: str = ""
    session: str = ""
    error: str = ""
    over: int = 0
    settles: str = ""

    @property
    def total(self) -> SpendingTotal:
        """What it used."""
        return SpendingTotal(
            requests=1,
            failed=bool(self.error),
            input=self.input,
            output=self.output,
            cost=self.cost or Decimal(0),
            unpriced=self.cost is None and (self.input > 0 or not self.error),
            over=self.over,
        )


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """The most tokens that a request may take which begins now; `id` is its own."""

    day: date
    at: str
    id: str
    tokens: int


class SpendingJournal:
    """The journal in `files`; what was read once is not read again."""

    def __init__(self, files: FileStore) -> None:
        """Read nothing yet."""
        self._files = files
        self._day: date | None = None
        self._read_to = 0
        self._total = SpendingTotal()
        self._reserved: dict[str, int] = {}

    async def reserve(self, reserved: Reservation) -> None:
        """Append what a request may take, durably."""
        await self._append(
            reserved.day,
            {"at": reserved.at, "day": reserved.day.isoformat(), "id": reserved.id, "reserved": reserved.tokens},
        )

    async def append_request(self, asked: RequestRecord) -> None:
        """Append one request, durably."""
        values: dict[str, str | int | None] = {
            "at": asked.at, "day": asked.day.isoformat(), "purpose": asked.purpose, "model": asked.model,
            "input": asked.input, "output": asked.output, "cost": None if asked.cost is None else str(asked.cost),
            "user": asked.user, "agent": asked.agent, "session": asked.session, "error": asked.error,
            "over": asked.over or None, "settles": asked.settles,
        }  # fmt: skip
        await self._append(asked.day, {name: value for name, value in values.items() if value not in {"", None}})

    async def _append(self, day: date, values: dict[str, str | int | None]) -> None:
        line = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        await self._files.append(_month_path(day), f"{line}\n".encode())

    async def read_day(self, day: date) -> SpendingTotal:
        """Return what was spent and is reserved on `day`, by all processes."""
        if day != self._day:
            self._reset(day)
        try:
            data = await self._files.read_from(_month_path(day), self._read_to)
        except FileMissing:
            self._reset(day)
            return self._total
        whole, _, _ = data.rpartition(b"\n")
        if whole:
            self._read_to += len(whole) + 1
            for line in _read_lines(whole):
                if line.day == day:
                    self._add_line(line)
        return replace(self._total, reserved=sum(self._reserved.values()))

    def _reset(self, day: date) -> None:
        self._day, self._read_to, self._total, self._reserved = day, 0, SpendingTotal(), {}

    def _add_line(self, line: "RequestRecord | Reservation") -> None:
        if isinstance(line, Reservation):
            self._reserved[line.id] = line.tokens
        else:
            self._total += line.total
            self._reserved.pop(line.settles, None)

    async def read_since(self, day: date) -> list[RequestRecord]:
        """Return the requests of `day` and after it, in the order they were written."""
        paths = [info.path for info in await self._files.list(SPENDING_FOLDER) if info.path >= _month_path(day)]
        found = [line for path in paths for line in _read_lines((await self._files.read(path)).data)]
        return [line for line in found if isinstance(line, RequestRecord) and line.day >= day]


def _month_path(day: date) -> str:
    return f"{SPENDING_FOLDER}/{day:%Y-%m}.jsonl"


def _read_lines(data: bytes) -> Iterator[RequestRecord | Reservation]:
    for line in data.split(b"\n"):
        try:
            values = decode_json(line)
            yield _read_reservation(values) if "reserved" in values else _read_request(values)
        except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation):
            # a blank, torn or damaged line
            continue


def _read_reservation(values: dict[str, object]) -> Reservation:
    return Reservation(
        day=date.fromisoformat(str(values["day"])),
        at=str(values["at"]),
        id=str(values["id"]),
        tokens=_read_count(values["reserved"]),
    )


def _read_request(values: dict[str, object]) -> RequestRecord:
    cost = values.get("cost")
    return RequestRecord(
        day=date.fromisoformat(str(values["day"])),
        at=str(values["at"]),
        purpose=str(values["purpose"]),
        model=str(values["model"]),
        input=_read_count(values.get("input")),
        output=_read_count(values.get("output")),
        cost=None if cost is None else _read_cost(cost),
        user=str(values.get("user", "")),
        agent=str(values.get("agent", "")),
        session=str(values.get("session", "")),
        error=str(values.get("error", "")),
        over=_read_count(values.get("over")),
        settles=str(values.get("settles", "")),
    )


def _read_count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _read_cost(value: object) -> Decimal | None:
    found = Decimal(str(value))
    return found if found.is_finite() and found >= 0 else None
