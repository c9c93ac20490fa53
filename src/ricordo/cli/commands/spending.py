"""`spending`: what memory asked models for on its own, day by day, and what is left of today's limit."""

from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.context import Target, require_target, run_async, print_setting_errors
from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, pluralize, dim, print_json, print_line, escape

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from ricordo.messages.types import JsonValue
    from ricordo.spending import RequestRecord, SpendingConfig, SpendingTotal

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
    from ricordo.runtime.assembly import root_files
    from ricordo.spending.journal import SpendingJournal

    target = require_target(root, user, project)
    print_setting_errors(target)
    today = SystemClock().today()

    async def read() -> "tuple[Sequence[RequestRecord], SpendingTotal]":
        journal = SpendingJournal(root_files(target.user_folder))
        return await journal.read_since(today - timedelta(days=days - 1)), await journal.read_day(today)

    asked, spent = run_async(read)
    if as_json:
        print_json(_spending_document(target, asked, spent))
        return
    _print_today(spent, target.settings.spending)
    for day, of_day in groupby(asked, key=lambda each: each.day):
        _print_day(day, list(of_day))


def _print_today(spent: "SpendingTotal", config: "SpendingConfig") -> None:
    from ricordo.spending.plan import find_refusal

    tokens = f" of {config.daily_tokens:,}" if config.daily_tokens is not None else ""
    cost = f" of ${config.daily_cost:,.2f}" if config.daily_cost is not None else ""
    requests = pluralize(spent.requests, "request")
    print_line(f"{bold('Today')}  {requests}, {spent.tokens:,}{tokens} tokens, ${spent.cost:,.4f}{cost}")
    if spent.unpriced:
        print_line(dim(f"       the price of {pluralize(spent.unpriced, 'request')} is not known"))
    if spent.reserved:
        print_line(dim(f"       {spent.reserved:,} tokens are reserved for requests that have not ended"))
    if spent.over:
        print_line(
            dim(f"       {spent.over:,} tokens are more than was allowed: a model did not keep to what it was told")
        )
    if why := find_refusal(spent, config, tokens=1):
        print_line(f"       The limit is reached: {why}. Memory goes on by rules until tomorrow.")


def _print_day(day: "date", asked: "Sequence[RequestRecord]") -> None:
    print_line(f"\n{bold(day.isoformat())}")
    for (purpose, model), spent in _sum_by_purpose(asked).items():
        failed = f", {spent.failed} failed" if spent.failed else ""
        print_line(
            f"  {escape(purpose):<16} {spent.requests:>5,}  in {spent.input:>9,}  out {spent.output:>8,}  "
            f"${spent.cost:>8,.4f}  {dim(escape(model) + failed)}"
        )


def _sum_by_purpose(asked: "Sequence[RequestRecord]") -> "dict[tuple[str, str], SpendingTotal]":
    from ricordo.spending import SpendingTotal

    found: dict[tuple[str, str], SpendingTotal] = {}
    for each in asked:
        key = each.purpose, each.model
        found[key] = found.get(key, SpendingTotal()) + each.total
    return dict(sorted(found.items()))


def _spending_document(
    target: Target, asked: "Sequence[RequestRecord]", spent: "SpendingTotal"
) -> "dict[str, JsonValue]":
    from ricordo.spending.plan import find_refusal

    config = target.settings.spending
    days: list[JsonValue] = [
        {"day": day.isoformat(), "purpose": purpose, "model": model, **_spent_document(each)}
        for day, of_day in groupby(asked, key=lambda each: each.day)
        for (purpose, model), each in _sum_by_purpose(list(of_day)).items()
    ]
    limit: dict[str, JsonValue] = {
        "tokens": config.daily_tokens,
        "cost": config.daily_cost,
        "reached": bool(find_refusal(spent, config, tokens=1)),
    }
    now: dict[str, JsonValue] = {**_spent_document(spent), "reserved": spent.reserved}
    return {"root": str(target.root), "today": now, "limit": limit, "days": days}


def _spent_document(spent: "SpendingTotal") -> "dict[str, JsonValue]":
    return {
        "requests": spent.requests,
        "failed": spent.failed,
        "input": spent.input,
        "output": spent.output,
        "cost": float(spent.cost),
        "unpriced": spent.unpriced,
        "over": spent.over,
    }
