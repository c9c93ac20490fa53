"""`spending`: what memory asked models for on its own, day by day, and what is left of today's limit."""

from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, existing, run, tell_trouble
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, counted, dim, emit, say, shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from ricordo.messages.types import JsonValue
    from ricordo.spending import Asked, SpendingConfig, Spent

__all__ = ["spending"]


def spending(
    *,
    days: Annotated[int, typer.Option("--days", "-d", min=1, max=3_660, help="So many days, today included.")] = 7,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what memory asked models for in the background, and what is left of today's limit.

    Over the limit memory goes on by rules until tomorrow; turns are never counted.
    """
    from ricordo.clock import SystemClock
    from ricordo.runtime.assembly import files_of
    from ricordo.spending.journal import SpendingJournal

    target = existing(root, user, project)
    tell_trouble(target)
    today = SystemClock().today()

    async def read() -> "tuple[Sequence[Asked], Spent]":
        journal = SpendingJournal(files_of(target.place))
        return await journal.since(today - timedelta(days=days - 1)), await journal.spent_on(today)

    asked, spent = run(read)
    if as_json:
        emit(_document(target, asked, spent))
        return
    _print_today(spent, target.settings.spending)
    for day, of_day in groupby(asked, key=lambda each: each.day):
        _print_day(day, list(of_day))


def _print_today(spent: "Spent", config: "SpendingConfig") -> None:
    from ricordo.spending.plan import refusal

    tokens = f" of {config.daily_tokens:,}" if config.daily_tokens is not None else ""
    cost = f" of ${config.daily_cost:,.2f}" if config.daily_cost is not None else ""
    requests = counted(spent.requests, "request")
    say(f"{bold('Today')}  {requests}, {spent.tokens:,}{tokens} tokens, ${spent.cost:,.4f}{cost}")
    if spent.unpriced:
        say(dim(f"       the price of {counted(spent.unpriced, 'request')} is not known"))
    if spent.reserved:
        say(dim(f"       {spent.reserved:,} tokens are reserved for requests that have not ended"))
    if spent.over:
        say(dim(f"       {spent.over:,} tokens are more than was allowed: a model did not keep to what it was told"))
    if why := refusal(spent, config, tokens=1):
        say(f"       The limit is reached: {why}. Memory goes on by rules until tomorrow.")


def _print_day(day: "date", asked: "Sequence[Asked]") -> None:
    say(f"\n{bold(day.isoformat())}")
    for (purpose, model), spent in _by_purpose(asked).items():
        failed = f", {spent.failed} failed" if spent.failed else ""
        say(
            f"  {shown(purpose):<16} {spent.requests:>5,}  in {spent.input:>9,}  out {spent.output:>8,}  "
            f"${spent.cost:>8,.4f}  {dim(shown(model) + failed)}"
        )


def _by_purpose(asked: "Sequence[Asked]") -> "dict[tuple[str, str], Spent]":
    from ricordo.spending import Spent

    found: dict[tuple[str, str], Spent] = {}
    for each in asked:
        key = each.purpose, each.model
        found[key] = found.get(key, Spent()) + each.spent
    return dict(sorted(found.items()))


def _document(target: Target, asked: "Sequence[Asked]", spent: "Spent") -> "dict[str, JsonValue]":
    from ricordo.spending.plan import refusal

    config = target.settings.spending
    days: list[JsonValue] = [
        {"day": day.isoformat(), "purpose": purpose, "model": model, **_figures(each)}
        for day, of_day in groupby(asked, key=lambda each: each.day)
        for (purpose, model), each in _by_purpose(list(of_day)).items()
    ]
    limit: dict[str, JsonValue] = {
        "tokens": config.daily_tokens,
        "cost": config.daily_cost,
        "reached": bool(refusal(spent, config, tokens=1)),
    }
    now: dict[str, JsonValue] = {**_figures(spent), "reserved": spent.reserved}
    return {"root": str(target.root), "today": now, "limit": limit, "days": days}


def _figures(spent: "Spent") -> "dict[str, JsonValue]":
    return {
        "requests": spent.requests,
        "failed": spent.failed,
        "input": spent.input,
        "output": spent.output,
        "cost": float(spent.cost),
        "unpriced": spent.unpriced,
        "over": spent.over,
    }
