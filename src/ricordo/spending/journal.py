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
from ricordo.messages.jsontext import decoded
from ricordo.spending.plan import Spent

__all__ = ["FOLDER", "Asked", "Reserved", "SpendingJournal"]

FOLDER = "spending"
"""Where the files lie, below the root."""


@dataclass(frozen=True, kw_only=True)
class Asked:
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
    def spent(self) -> Spent:
        """What it used."""
        return Spent(
            requests=1,
            failed=bool(self.error),
            input=self.input,
            output=self.output,
            cost=self.cost or Decimal(0),
            unpriced=self.cost is None and (self.input > 0 or not self.error),
            over=self.over,
        )


@dataclass(frozen=True, kw_only=True)
class Reserved:
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
        self._spent = Spent()
        self._reserved: dict[str, int] = {}

    async def reserve(self, reserved: Reserved) -> None:
        """Append what a request may take, durably."""
        await self._append(
            reserved.day,
            {"at": reserved.at, "day": reserved.day.isoformat(), "id": reserved.id, "reserved": reserved.tokens},
        )

    async def note(self, asked: Asked) -> None:
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
        await self._files.append(_path(day), f"{line}\n".encode())

    async def spent_on(self, day: date) -> Spent:
        """Return what was spent and is reserved on `day`, by all processes."""
        if day != self._day:
            self._forget(day)
        try:
            data = await self._files.read_from(_path(day), self._read_to)
        except FileMissing:
            self._forget(day)
            return self._spent
        whole, _, _ = data.rpartition(b"\n")
        if whole:
            self._read_to += len(whole) + 1
            for line in _read(whole):
                if line.day == day:
                    self._count(line)
        return replace(self._spent, reserved=sum(self._reserved.values()))

    def _forget(self, day: date) -> None:
        self._day, self._read_to, self._spent, self._reserved = day, 0, Spent(), {}

    def _count(self, line: "Asked | Reserved") -> None:
        if isinstance(line, Reserved):
            self._reserved[line.id] = line.tokens
        else:
            self._spent += line.spent
            self._reserved.pop(line.settles, None)

    async def since(self, day: date) -> list[Asked]:
        """Return the requests of `day` and after it, in the order they were written."""
        paths = [info.path for info in await self._files.list(FOLDER) if info.path >= _path(day)]
        found = [line for path in paths for line in _read((await self._files.read(path)).data)]
        return [line for line in found if isinstance(line, Asked) and line.day >= day]


def _path(day: date) -> str:
    return f"{FOLDER}/{day:%Y-%m}.jsonl"


def _read(data: bytes) -> Iterator[Asked | Reserved]:
    for line in data.split(b"\n"):
        try:
            values = decoded(line)
            yield _reserved(values) if "reserved" in values else _asked(values)
        except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation):
            # a blank, torn or damaged line
            continue


def _reserved(values: dict[str, object]) -> Reserved:
    return Reserved(
        day=date.fromisoformat(str(values["day"])),
        at=str(values["at"]),
        id=str(values["id"]),
        tokens=_count(values["reserved"]),
    )


def _asked(values: dict[str, object]) -> Asked:
    cost = values.get("cost")
    return Asked(
        day=date.fromisoformat(str(values["day"])),
        at=str(values["at"]),
        purpose=str(values["purpose"]),
        model=str(values["model"]),
        input=_count(values.get("input")),
        output=_count(values.get("output")),
        cost=None if cost is None else _cost(cost),
        user=str(values.get("user", "")),
        agent=str(values.get("agent", "")),
        session=str(values.get("session", "")),
        error=str(values.get("error", "")),
        over=_count(values.get("over")),
        settles=str(values.get("settles", "")),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _cost(value: object) -> Decimal | None:
    found = Decimal(str(value))
    return found if found.is_finite() and found >= 0 else None
