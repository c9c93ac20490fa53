"""The record of the requests of memory: one line of JSON for each, in a file for each month, below `spending/`.

It holds names and numbers and never content. Every process of a root appends to it and reads what others appended, so
all of them know what was spent. Invariant: a line that is torn or damaged hides no other.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation

from ricordo.errors import FileMissing
from ricordo.files import FileStore
from ricordo.spending.plan import Spent

__all__ = ["FOLDER", "Asked", "SpendingJournal"]

FOLDER = "spending"
"""Where the files lie, below the root."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request: on which day of the user's calendar, what for (`purpose`), of which model and for whom.

    `input` and `output` are tokens, `cost` is in US dollars, None where the price is not known. `error` is the type of
    the error of one that gave no answer.
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

    @property
    def spent(self) -> Spent:
        """What it used."""
        return Spent(
            requests=1,
            failed=bool(self.error),
            input=self.input,
            output=self.output,
            cost=self.cost or Decimal(0),
            unpriced=self.cost is None and not self.error,
        )


class SpendingJournal:
    """The journal in `files`; what was read once is not read again."""

    def __init__(self, files: FileStore) -> None:
        """Read nothing yet."""
        self._files = files
        self._day: date | None = None
        self._read_to = 0
        self._spent = Spent()

    async def note(self, asked: Asked) -> None:
        """Append one request, durably."""
        values = {
            "at": asked.at, "day": asked.day.isoformat(), "purpose": asked.purpose, "model": asked.model,
            "input": asked.input, "output": asked.output, "cost": None if asked.cost is None else str(asked.cost),
            "user": asked.user, "agent": asked.agent, "session": asked.session, "error": asked.error,
        }  # fmt: skip
        kept = {name: value for name, value in values.items() if value not in {"", None}}
        line = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
        await self._files.append(_path(asked.day), f"{line}\n".encode())

    async def spent_on(self, day: date) -> Spent:
        """Return what was spent on `day`, by all processes."""
        if day != self._day:
            self._day, self._read_to, self._spent = day, 0, Spent()
        try:
            data = await self._files.read_from(_path(day), self._read_to)
        except FileMissing:
            self._read_to, self._spent = 0, Spent()
            return self._spent
        whole, _, _ = data.rpartition(b"\n")
        if whole:
            self._read_to += len(whole) + 1
            for asked in _read(whole):
                if asked.day == day:
                    self._spent += asked.spent
        return self._spent

    async def since(self, day: date) -> list[Asked]:
        """Return the requests of `day` and after it, in the order they were written."""
        paths = [info.path for info in await self._files.list(FOLDER) if info.path >= _path(day)]
        found = [asked for path in paths for asked in _read((await self._files.read(path)).data)]
        return [asked for asked in found if asked.day >= day]


def _path(day: date) -> str:
    return f"{FOLDER}/{day:%Y-%m}.jsonl"


def _read(data: bytes) -> Iterator[Asked]:
    for line in data.split(b"\n"):
        try:
            yield _asked(json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, InvalidOperation):
            # a blank, torn or damaged line
            continue


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
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _cost(value: object) -> Decimal | None:
    found = Decimal(str(value))
    return found if found.is_finite() and found >= 0 else None
