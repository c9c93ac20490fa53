"""The conformance table: which checks each store is held to, and what it offers, as Markdown.

It is rendered from what the stores declare and from what is found by type; that the checks pass is the suite's to say.
"""

from collections.abc import Mapping
from pathlib import Path

from ricordo.stores.capabilities import Closes, Forgets, KeepsSessions, KeepsTombstones, Lists, Marks, Undoes
from ricordo.testing.store_subject import DEFAULT_SCOPE, StoreCheck, StoreSubject
from ricordo.testing.stores import STORE_CHECKS

__all__ = ["conformance_table", "list_capabilities", "checks_table", "stores_table"]

_CAPABILITIES = (Lists, Forgets, KeepsTombstones, Closes, KeepsSessions, Marks, Undoes)

_SILENT_REASONS = frozenset(
    {"it is not bounded", "it writes through the disk it is given", "it writes its files itself"}
)
"""Reasons for which a check does not apply that nobody needs to be told."""


async def list_capabilities(subject: StoreSubject, folder: Path) -> tuple[str, ...]:
    """Open the store in an empty folder and return the names of the capabilities that it offers."""
    async with subject.open_backend(folder, DEFAULT_SCOPE) as backend:
        store = backend.bind(DEFAULT_SCOPE)
        return tuple(each.__name__ for each in _CAPABILITIES if store.offers(each) is not None)


def conformance_table(stores: Mapping[str, type[StoreSubject]]) -> str:
    """Return the table of stores and invariants: how many of the checks of each apply, and why others do not."""
    names = _invariants()
    rows = [[f"`{scheme}`", *(_format_cell(kind(), name) for name in names)] for scheme, kind in stores.items()]
    reasons = [
        f"- `{scheme}`: {'; '.join(found)}." for scheme, kind in stores.items() if (found := _list_skip_reasons(kind()))
    ]
    return "\n\n".join([_render_table(["store", *names], rows), "What does not apply, and why:", "\n".join(reasons)])


def stores_table(stores: Mapping[str, type[StoreSubject]], offers: Mapping[str, tuple[str, ...]]) -> str:
    """Return the table of what each store declares, and of what it offers by type."""
    rows = []
    for scheme, kind in stores.items():
        subject = kind()
        keeps = "nothing" if subject.capacity == 0 else "until it is closed" if not subject.keeps else "for good"
        several = "yes" if subject.keeps and subject.shared else "no"
        finds = "by relevance" if subject.order == "relevance" else "newest first"
        scale = f"{subject.scale:,}" if subject.capacity != 0 else "-"
        besides = ", ".join(offers[scheme]) or "nothing"
        rows.append([f"`{scheme}`", keeps, several, subject.recalls, finds, scale, besides])
    return _render_table(
        ["store", "keeps", "several processes", "recalls", "order", "made for", "offers besides"], rows
    )


def checks_table() -> str:
    """Return the table of every check, under its invariant."""
    ordered = sorted(STORE_CHECKS, key=lambda check: _invariants().index(check.invariant))
    return _render_table(
        ["invariant", "a store is held to this"], [[check.invariant, check.sentence] for check in ordered]
    )


def _invariants() -> list[str]:
    """Return the invariants, those with a number first."""
    found = {check.invariant for check in STORE_CHECKS}
    return sorted(found, key=lambda name: (not name[1:].isdigit(), name[0], int(name[1:]) if name[1:].isdigit() else 0))


def _format_cell(subject: StoreSubject, invariant: str) -> str:
    checks = [
        check
        for check in STORE_CHECKS
        if check.invariant == invariant and subject.skip_reason(check.needs) not in _SILENT_REASONS
    ]
    held = sum(not subject.skip_reason(check.needs) for check in checks)
    return "-" if not held else "yes" if held == len(checks) else f"{held} of {len(checks)}"


def _list_skip_reasons(subject: StoreSubject) -> list[str]:
    left_out: dict[str, list[StoreCheck]] = {}
    for check in STORE_CHECKS:
        if reason := subject.skip_reason(check.needs):
            left_out.setdefault(reason, []).append(check)
    return [
        f"{', '.join(sorted({check.invariant for check in checks}, key=_invariants().index))} ({reason})"
        for reason, checks in left_out.items()
        if reason not in _SILENT_REASONS
    ]


def _render_table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
