"""The conformance suite for stores, as a class for pytest and as checks that need no test framework.

    class TestMyStore(StoreConformance):
        address = "mine:{folder}"

Each check opens the store in its own folder and raises `AssertionError` with a sentence if the store does not pass. A
store declares its properties in a `StoreSubject`; checks that do not apply are skipped with a reason. Ricordo's own
stores are declared here too, and the tables of the docs are rendered from these declarations.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias
from unittest import SkipTest

import anyio

from ricordo.errors import VersionConflict
from ricordo.guard.permissions import PermissionRule, ToolPattern
from ricordo.messages import Message, Text
from ricordo.storage import ABSENT
from ricordo.stores.contract import Closes, Forgets, KeepsSessions, KeepsTombstones, Lists, Marks, Undoes
from ricordo.testing.store_failures import FAILURE_CHECKS
from ricordo.testing.store_recall import RECALL_CHECKS
from ricordo.testing.store_saving import SAVING_CHECKS
from ricordo.testing.store_subject import DEFAULT_SCOPE, StoreCheck, StoreSubject
from ricordo.workspace.agent_state import AgentState, PlanState, StateStore, Todo, WorkState

__all__ = [
    "BUILT_IN_STORES",
    "STATE_STORE_CHECKS",
    "STORE_CHECKS",
    "StateStoreCheck",
    "StoreCheck",
    "StoreConformance",
    "checks_table",
    "conformance_table",
    "list_capabilities",
    "stores_table",
]


STORE_CHECKS: tuple[StoreCheck, ...] = (*SAVING_CHECKS, *RECALL_CHECKS, *FAILURE_CHECKS)
"""Every check. Call each with its own folder: `await check(subject, folder)`."""


class StoreConformance(StoreSubject):
    """A test for each check. Subclass it at the top level of a module: `class TestMyStore(StoreConformance)`.

    The tests run under pytest without plugins: each takes `tmp_path` and runs an event loop.
    """


def _make_test(check: StoreCheck) -> Callable[[StoreSubject, Path], None]:
    def test(self: StoreSubject, tmp_path: Path) -> None:
        reason = self.skip_reason(check.needs)
        if reason:
            raise SkipTest(reason)
        anyio.run(check, self, tmp_path)

    test.__name__ = f"test_{check.name}"
    test.__doc__ = check.sentence
    return test


for _check in STORE_CHECKS:
    setattr(StoreConformance, f"test_{_check.name}", _make_test(_check))


class _Nothing(StoreConformance):
    address = "none:"
    is_durable = False
    capacity = 0


class _Sessions(StoreConformance):
    address = "sessions:{folder}"
    recalls = "sessions"


class _Markdown(StoreConformance):
    address = "markdown:{folder}"


class _Jsonl(StoreConformance):
    address = "jsonl:{folder}"
    scale = 100_000


class _Json(StoreConformance):
    address = "json:{folder}"


class _Kv(StoreConformance):
    address = "kv:{folder}"
    uses_disk = False


class _FullText(StoreConformance):
    address = "fulltext:{folder}"
    order = "relevance"


class _Vector(StoreConformance):
    address = "vector:{folder}?embedder=hashing"
    order = "relevance"


class _Folder(StoreConformance):
    address = "folder:{folder}"
    free_text = True


class _Ring(StoreConformance):
    address = "ring:?capacity=40"
    is_durable = False
    capacity = 40


class _Mock(StoreConformance):
    address = "mock:"
    is_durable = False


class _Fanout(StoreConformance):
    address = "fanout:jsonl:{folder}/a,json:{folder}/b"


class _Layered(StoreConformance):
    address = "layered:{folder}"
    order = "relevance"
    recalls = "passages"


BUILT_IN_STORES: dict[str, type[StoreConformance]] = {
    "none": _Nothing,
    "sessions": _Sessions,
    "markdown": _Markdown,
    "jsonl": _Jsonl,
    "json": _Json,
    "kv": _Kv,
    "fulltext": _FullText,
    "vector": _Vector,
    "folder": _Folder,
    "ring": _Ring,
    "mock": _Mock,
    "fanout": _Fanout,
    "layered": _Layered,
}
"""Ricordo's own stores by URL scheme."""


_CAPABILITIES = (Lists, Forgets, KeepsTombstones, Closes, KeepsSessions, Marks, Undoes)
_SILENT_REASONS = frozenset(
    {"it is not bounded", "it writes through the disk it is given", "it writes its files itself"}
)
"""Reasons for skipping a check that the tables do not show."""


async def list_capabilities(subject: StoreSubject, folder: Path) -> tuple[str, ...]:
    """Open the store in an empty folder and return the names of the capabilities it offers."""
    async with subject.open_backend(folder, DEFAULT_SCOPE) as backend:
        store = backend.bind(DEFAULT_SCOPE)
        return tuple(each.__name__ for each in _CAPABILITIES if store.offers(each) is not None)


def conformance_table(stores: Mapping[str, type[StoreSubject]]) -> str:
    """Return the table of stores and invariants: how many checks of each apply, and why the others do not."""
    names = _invariants()
    rows = [[f"`{scheme}`", *(_format_cell(kind(), name) for name in names)] for scheme, kind in stores.items()]
    reasons = [
        f"- `{scheme}`: {'; '.join(skip_reasons)}."
        for scheme, kind in stores.items()
        if (skip_reasons := _list_skip_reasons(kind()))
    ]
    return "\n\n".join([_render_table(["store", *names], rows), "What does not apply, and why:", "\n".join(reasons)])


def stores_table(stores: Mapping[str, type[StoreSubject]], offers: Mapping[str, tuple[str, ...]]) -> str:
    """Return the table of the declarations and the capabilities of each store."""
    rows = []
    for scheme, kind in stores.items():
        subject = kind()
        keeps = "nothing" if subject.capacity == 0 else "until it is closed" if not subject.is_durable else "for good"
        is_shared = "yes" if subject.is_durable and subject.is_shared else "no"
        order = "by relevance" if subject.order == "relevance" else "newest first"
        scale = f"{subject.scale:,}" if subject.capacity != 0 else "-"
        besides = ", ".join(offers[scheme]) or "nothing"
        rows.append([f"`{scheme}`", keeps, is_shared, subject.recalls, order, scale, besides])
    return _render_table(
        ["store", "keeps", "several processes", "recalls", "order", "made for", "offers besides"], rows
    )


def checks_table() -> str:
    """Return the table of all checks, grouped by invariant."""
    checks = sorted(STORE_CHECKS, key=lambda check: _invariants().index(check.invariant))
    return _render_table(
        ["invariant", "a store is held to this"], [[check.invariant, check.sentence] for check in checks]
    )


def _invariants() -> list[str]:
    """Return the invariants, those with a number first."""
    names = {check.invariant for check in STORE_CHECKS}
    return sorted(names, key=lambda name: (not name[1:].isdigit(), name[0], int(name[1:]) if name[1:].isdigit() else 0))


def _format_cell(subject: StoreSubject, invariant: str) -> str:
    checks = [
        check
        for check in STORE_CHECKS
        if check.invariant == invariant and subject.skip_reason(check.needs) not in _SILENT_REASONS
    ]
    passed = sum(not subject.skip_reason(check.needs) for check in checks)
    return "-" if not passed else "yes" if passed == len(checks) else f"{passed} of {len(checks)}"


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


StateStoreCheck: TypeAlias = Callable[[StateStore], Awaitable[None]]
_SAMPLE_STANDING = WorkState(
    plan=PlanState(active=True, path="plans/move.md", author="user"),
    todos=(Todo(id="1", content="Read it", status="completed"), Todo(id="2", content="Write it", status="in_progress")),
    permissions=(
        PermissionRule(decision="deny", pattern=ToolPattern(tool="shell", argument="git push*"), reason="Never."),
        PermissionRule(decision="allow", pattern=ToolPattern(tool="read_file"), source="person"),
    ),
    delivered_results=("task-1",),
)
_SAMPLE_STATE = AgentState(
    agent="main",
    session="s",
    window=(Message(role="user", parts=(Text(text="Hello."),), id="m1"),),
    last="m1",
    user="ada",
    learns=False,
    turns=2,
    ratio=1.25,
    work_state=_SAMPLE_STANDING,
)


async def _what_was_never_saved_is_an_empty_state(states: StateStore) -> None:
    loaded = await states.load("main", "s")
    _require(loaded.state == AgentState(agent="main", session="s"), "a state that was never saved is not empty")
    _require(loaded.version == ABSENT, "a state that was never saved has a version")
    _require(not loaded.set_aside, "something was set aside that was never there")


async def _what_was_saved_is_found_again(states: StateStore) -> None:
    version = await states.save(_SAMPLE_STATE, expected=ABSENT)
    loaded = await states.load("main", "s")
    _require(loaded.state == _SAMPLE_STATE, "a state is not loaded as it was saved")
    _require(loaded.version == version, "the version that is loaded is not the one that was saved")
    later = replace(_SAMPLE_STATE, window=(), turns=3, work_state=WorkState())
    await states.save(later, expected=version)
    _require((await states.load("main", "s")).state == later, "a state is not replaced as a whole")


async def _of_two_that_replace_one_version_the_second_is_refused(states: StateStore) -> None:
    first = await states.save(_SAMPLE_STATE, expected=ABSENT)
    newest = replace(_SAMPLE_STATE, turns=3)
    await states.save(newest, expected=first)
    for expected in (first, ABSENT):
        refused = False
        try:
            await states.save(replace(_SAMPLE_STATE, turns=9), expected=expected)
        except VersionConflict:
            refused = True
        _require(refused, "a version is replaced that is not the newest")
    _require((await states.load("main", "s")).state == newest, "what was refused was saved all the same")


async def _each_session_of_each_agent_is_by_itself(states: StateStore) -> None:
    saved_states = [
        replace(_SAMPLE_STATE, agent=agent, session=session) for agent in ("main", "other") for session in ("s", "s.2")
    ]
    for turns, state in enumerate(saved_states):
        await states.save(replace(state, turns=turns), expected=ABSENT)
    loaded_states = [(await states.load(state.agent, state.session)).state for state in saved_states]
    _require([state.turns for state in loaded_states] == [0, 1, 2, 3], "the state of one session is that of another")


async def _what_a_newer_version_wrote_survives(states: StateStore) -> None:
    newer = replace(_SAMPLE_STATE, extra={"v": 99, "mood": {"calm": [True, None]}})
    version = await states.save(newer, expected=ABSENT)
    loaded = await states.load("main", "s")
    _require(loaded.state == newer, "the fields of a newer version are lost")
    await states.save(replace(loaded.state, turns=3), expected=version)
    resaved = (await states.load("main", "s")).state
    _require(resaved == replace(newer, turns=3), "the fields of a newer version are lost with the next saving")


def _require(condition: bool, message: str) -> None:  # noqa: FBT001
    if not condition:
        raise AssertionError(f"A store of states: {message}.")


STATE_STORE_CHECKS: tuple[StateStoreCheck, ...] = (
    _what_was_never_saved_is_an_empty_state,
    _what_was_saved_is_found_again,
    _of_two_that_replace_one_version_the_second_is_refused,
    _each_session_of_each_agent_is_by_itself,
    _what_a_newer_version_wrote_survives,
)
"""Every check. Call each with a new, empty store."""
