"""`ricordo` alone, `doctor` and `audit`: where memory is, how much there is, what is wrong, and who did what."""

import os
import shlex
import time
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, dim, escape, format_size, join_sentences, pluralize, print_json, print_line
from ricordo.cli.target import (
    Target,
    find_target,
    load_scope,
    locate_target,
    open_memory,
    read_memory,
    require_target,
    run_async,
)
from ricordo.errors import (
    DocumentInvalid,
    ExtraMissing,
    InvalidInput,
    InvalidSetting,
    ModelError,
    RootNotTrusted,
    ScopeError,
    StorageError,
    install_command,
)
from ricordo.lazy import dataclass
from ricordo.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ricordo.messages.types import JsonValue
    from ricordo.runtime import Settings
    from ricordo.runtime.doctor import Check
    from ricordo.search.contract import Freshness
    from ricordo.workspace import AuditRecord

__all__ = ["SearchMode", "audit", "describe_search_mode", "doctor", "format_doubts", "status"]


@dataclass(frozen=True, kw_only=True)
class SearchMode:
    """The id of the embedder, None without one; `description` is one line about it, `ok` says that it can be used."""

    embedder: str | None
    description: str
    ok: bool = True


def describe_search_mode(settings: "Settings") -> SearchMode:
    """Return by what the settings let memory be found, and what has a say in the order of the best."""
    from ricordo.runtime.models import choose_reranker

    search_mode = _describe_embedder(settings)
    if settings.reranker in {None, "none"}:
        return search_mode
    try:
        choose_reranker(settings.reranker)
    except (ExtraMissing, InvalidSetting) as error:
        return replace(search_mode, description=f"{search_mode.description}; {error}", ok=False)
    return replace(
        search_mode,
        description=f"{search_mode.description}; the reranker {settings.reranker} has a say in the order of the best",
    )


def _describe_embedder(settings: "Settings") -> SearchMode:
    from ricordo.runtime.models import choose_embedder

    try:
        embedder = choose_embedder(settings.embedder, settings)
    except (ExtraMissing, InvalidInput, ModelError) as error:
        return SearchMode(embedder=None, description=f"by words alone: {error}", ok=False)
    if embedder is not None:
        return SearchMode(embedder=embedder.model_id, description=f"by words and by meaning, with {embedder.model_id}")
    more = "" if settings.embedder is None else f"; {install_command('embed')} adds meaning"
    return SearchMode(embedder=None, description=f"by words alone{more}")


@dataclass(frozen=True, kw_only=True)
class _RootSummary:
    """What a root holds; `curated` counts the entries of MEMORY.md and of its topics, of which there are `topics`."""

    scope: str
    kinds: dict[str, int]
    sessions: int
    messages: int
    curated: int
    topics: int
    inbox: "Check"
    freshness: "Freshness"
    search_mode: SearchMode
    doubts: dict[str, int]

    @property
    def is_healthy(self) -> bool:
        """Return whether neither the index nor the inbox needs attention."""
        return self.freshness.state != "broken" and self.inbox.ok


def status(root: Path | None, user: str | None, project: str | None, as_json: bool) -> None:
    """Print the place and size of the memory; without a memory, the place where it would be created."""
    try:
        target = find_target(root, user, project)
    except RootNotTrusted as error:
        _print_untrusted(error, as_json=as_json)
        return
    figures = run_async(lambda: _load_summary(target)) if target.exists else None
    weight = _total_bytes(target.root) if figures else 0
    advice = _next_steps(figures)
    if as_json:
        print_json(
            {
                "root": str(target.root),
                "exists": target.exists,
                "trusted": True,
                "scope": figures.scope if figures else None,
                "entries": dict(figures.kinds) if figures else {},
                "sessions": figures.sessions if figures else 0,
                "messages": figures.messages if figures else 0,
                "curated": figures.curated if figures else 0,
                "doubts": dict(figures.doubts) if figures else {},
                "topics": figures.topics if figures else 0,
                "waiting": figures.inbox.count if figures else 0,
                "bytes": weight,
                "index": str(figures.freshness) if figures else None,
                "embedder": figures.search_mode.embedder if figures else None,
                "next": list(advice),
            }
        )
        return
    if figures:
        _print_summary(target, figures, weight)
    else:
        print_line(f"There is no memory here yet. It would be created in {escape(str(target.root))}.")
    print_line(f"\n{bold('Next')}")
    for line in advice:
        print_line(f"  {line}")


def _print_untrusted(error: RootNotTrusted, *, as_json: bool) -> None:
    """Say that nothing of the root is used, and what to do next."""
    path = shlex.quote(error.root)
    advice = [
        f"ricordo trust --show {path}   see what would come into effect",
        f"ricordo trust {path}          let it be used",
    ]
    if as_json:
        print_json({"root": error.root, "exists": True, "trusted": False, "why": str(error), "next": list(advice)})
        return
    print_line(f"{bold('Memory')}    {escape(error.root)}\n{escape(str(error))}\n\n{bold('Next')}")
    for line in advice:
        print_line(f"  {escape(line)}")


async def _load_summary(target: Target) -> _RootSummary:
    from anyio.to_thread import run_sync

    from ricordo.runtime.doctor import check_inbox
    from ricordo.runtime.workspace import Dependencies, open_workspace
    from ricordo.workspace.layout import MEMORY_PATH
    from ricordo.workspace.ledger import read_curated_entries

    async with open_memory(target) as memory:
        sessions, entries, scope = await memory.sessions(), await memory.entries(), memory.scope
        doubts = await memory.review()
    async with open_workspace(
        target.root, scope, Dependencies.create(settings=target.settings, embedder="none")
    ) as workspace:
        # it is brought up to date for a moment only: who has much to be taken in need not wait for it
        await workspace.memory_root.index.search("", 1)
        curated = await read_curated_entries(workspace.memory_root.files)
        return _RootSummary(
            scope=str(scope),
            kinds=dict(Counter(entry.kind for entry in entries).most_common()),
            sessions=len(sessions),
            messages=sum(info.messages for info in sessions),
            curated=len(curated),
            topics=len({located.path for located in curated} - {MEMORY_PATH}),
            inbox=await check_inbox(workspace.inbox),
            freshness=workspace.memory_root.index.freshness(),
            search_mode=await run_sync(describe_search_mode, target.settings),
            doubts=dict(Counter(doubt.kind for doubt in doubts)),
        )


def _print_summary(target: Target, figures: _RootSummary, weight: int) -> None:
    kinds = ", ".join(pluralize(count, escape(kind)) for kind, count in figures.kinds.items())
    entries = pluralize(sum(figures.kinds.values()), "entry")
    print_line(f"{bold('Memory')}    {escape(str(target.root))}")
    print_line(f"{bold('Scope')}     {escape(figures.scope)}")
    print_line(f"{bold('Entries')}   {entries}{f': {kinds}' if kinds else ''}")
    print_line(
        f"{bold('Sessions')}  {pluralize(figures.sessions, 'session')}, {pluralize(figures.messages, 'message')}"
    )
    print_line(f"{bold('Curated')}   {_format_curated(figures)}")
    print_line(f"{bold('Quality')}   {format_doubts(figures.doubts)}")
    print_line(f"{bold('Inbox')}     {_format_inbox(figures.inbox)}")
    print_line(f"{bold('Size')}      {format_size(weight)}")
    print_line(f"{bold('Index')}     {escape(str(figures.freshness))}")
    print_line(f"{bold('Found')}     {escape(figures.search_mode.description)}")


def _format_curated(figures: _RootSummary) -> str:
    topics = f" and {pluralize(figures.topics, 'topic')}" if figures.topics else ""
    return f"{pluralize(figures.curated, 'entry')} in MEMORY.md{topics}"


def format_doubts(counts: "Mapping[str, int]") -> str:
    """Return how many doubts of each kind there are, and the command that decides them."""
    if not counts:
        return "nothing is doubtful"
    found = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    return f"to review: {found}; `ricordo review` walks through them, `ricordo review --kind KIND` through one kind"


def _format_inbox(inbox: "Check") -> str:
    if not inbox.ok:
        return escape(inbox.detail)
    return f"{inbox.count:,} {'job waits' if inbox.count == 1 else 'jobs wait'}" if inbox.count else "nothing waits"


def _next_steps(figures: _RootSummary | None) -> list[str]:
    chat_step = "ricordo chat                   talk to an agent that remembers"
    import_step = "ricordo import                 bring along what other programs know"
    if figures is None:
        return ["ricordo demo                   see it work, in a folder of its own", import_step, chat_step]
    if not figures.kinds and not figures.sessions:
        advice = [
            import_step,
            chat_step,
        ]
    else:
        advice = [
            'ricordo ask "QUESTION"         an answer with its source',
            chat_step,
            "ricordo memory list            everything that is remembered" if figures.sessions else import_step,
        ]
    doctor = "ricordo doctor                 see what is wrong"
    return advice if figures.is_healthy else [doctor, *advice[:2]]


def _total_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


_HOOK_DAYS = 7
_NOTE_CHECKS = frozenset(
    {
        "contradictions", "curated", "dangling", "duplicates", "fragments", "hooks", "journals", "junk", "noise",
        "outdated", "profile", "quarantine", "repeated", "stale", "states", "tasks", "topics", "unconfirmed",
        "unlearned", "unused", "users",
    }
)  # fmt: skip


def doctor(
    *,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="ADDRESS",
            show_default=False,
            help="Look at the memories of this store instead, such as jsonl:./notes.",
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Take a note for a failure.")] = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at every part of the root and change nothing.

    The exit code is 1 if something is wrong.
    """
    place, checks = _run_checks(root, user, project, store)
    well = all(check.ok and not (strict and _is_note(check)) for check in checks)
    if as_json:
        documents: list[JsonValue] = [
            {"name": check.name, "ok": check.ok, "count": check.count, "detail": check.detail} for check in checks
        ]
        print_json({"store" if store else "root": place, "ok": well, "checks": documents})
    else:
        print_line(escape(place))
        width = max(len(check.name) for check in checks)
        for check in checks:
            print_line(
                f"  {_format_verdict(check)}  {check.name:<{width}} {check.count:>6,}  {escape(_format_detail(check))}"
            )
    if not well:
        raise typer.Exit(1)


def _run_checks(
    root: Path | None, user: str | None, project: str | None, store: str | None
) -> "tuple[str, list[Check]]":
    """Return what was looked at and the checks of it; of a root that is not trusted, that it is not."""
    from ricordo.runtime.doctor import Check

    try:
        target = locate_target(root, user, project)
        if store:
            return store, _check_store(target, store)
        target = target if target.stray_files else require_target(root, user, project)
    except RootNotTrusted as error:
        return error.root, [Check(name="trust", ok=False, count=1, detail=str(error))]
    return str(target.root), [
        *_check_root(target),
        _check_settings(target),
        _check_search_mode(target),
        *_check_hooks(target),
    ]


def _format_verdict(check: "Check") -> str:
    if not check.ok:
        return "FAIL"
    return "note" if _is_note(check) else "ok  "


def _is_note(check: "Check") -> bool:
    return check.ok and check.name in _NOTE_CHECKS and check.count > 0


def _format_detail(check: "Check") -> str:
    """Return what was looked at, and what to do only where there is something to do."""
    is_all = check.count or not check.ok or check.name == "finding"
    return check.detail if is_all else check.detail.partition(": ")[0]


def _check_store(target: Target, address: str) -> "list[Check]":
    """Return the checks of what another store than the root keeps. Raises: InvalidInput where it can't list that."""
    from ricordo.clock import SystemClock
    from ricordo.curation.quality_checks import check_store_entries
    from ricordo.runtime.doctor import Check
    from ricordo.runtime.stores import open_store
    from ricordo.stores.contract import KeepsTombstones, entries_as_stored

    async def look() -> "list[Check]":
        async with open_store(address, scope=await load_scope(target), settings=target.settings) as store:
            entries = await entries_as_stored(store)
            if entries is None:
                raise InvalidInput(f"The store {address} can't list its memories, so they can't be looked at.")
            tombstone_store = store.offers(KeepsTombstones)
            tombstone_ids = {row.id for row in await tombstone_store.tombstones()} if tombstone_store else ()
            detail = "memories were forgotten, and are not taken in again; a record without content says when"
            forgotten_check = Check(name="forgotten", ok=True, count=len(tombstone_ids), detail=detail)
            return [*check_store_entries(entries, now=SystemClock().now()), forgotten_check]

    return run_async(look)


def _check_settings(target: Target) -> "Check":
    """Return the check of config.toml and of the variables: how many settings they give, and what is wrong."""
    from ricordo.runtime.doctor import Check

    if target.setting_errors:
        errors = join_sentences(target.setting_errors)
        rest = (
            "What else that file, or the environment, says is not used either: `ricordo config show` lists what holds"
        )
        detail = f"settings that can't be used: {errors} {rest}"
        return Check(name="config", ok=False, count=len(target.setting_errors), detail=detail)
    origins = [origin for origin in target.settings.origins.values() if origin.kind in {"file", "environment"}]
    return Check(name="config", ok=True, count=len(origins), detail="settings from config.toml and the environment")


def _check_search_mode(target: Target) -> "Check":
    """Return the check of the embedder: one that is named can be used, or none is there."""
    from ricordo.runtime.doctor import Check

    finding = describe_search_mode(target.settings)
    return Check(
        name="finding", ok=finding.ok, count=int(finding.embedder is not None), detail=f"found {finding.description}"
    )


def _check_hooks(target: Target) -> "list[Check]":
    """Return the check of the hooks that coding agents ran here in the last days; none if there were none."""
    from ricordo.hooks.log import read_runs
    from ricordo.hooks.places import make_place
    from ricordo.runtime.doctor import Check

    place, since = make_place(str(target.root), target.user, os.environ), time.time() - _HOOK_DAYS * 86_400
    runs = [run for run in read_runs(place.hooks_folder) if run.root == place.root and run.at >= since]
    if not runs:
        return []
    troubles = [f"{run.event} {run.trouble}".strip() for run in runs if run.trouble]
    names = ", ".join(dict.fromkeys(troubles))
    what = f"{len(runs):,} hooks of coding agents ran in the last {_HOOK_DAYS} days"
    detail = f"{what}, and some went wrong: {names}" if troubles else what
    return [Check(name="hooks", ok=True, count=len(troubles), detail=detail)]


def _check_root(target: Target) -> "list[Check]":
    """Return what was found; a root that can't be opened is looked at from outside."""
    from ricordo.runtime.doctor import Check
    from ricordo.runtime.workspace import inspect_root

    loss, finds = target.lost_marker_message if target.stray_files else None, describe_search_mode(target.settings).ok
    try:
        if loss is None:
            return read_memory(replace(target, setting_errors=()), lambda memory: memory.doctor(), finds=finds)
    except (DocumentInvalid, ScopeError, StorageError) as error:
        loss = str(error)
    broken = Check(name="root", ok=False, count=1, detail=loss)
    checks = [broken]
    for place in dict.fromkeys([target.user_folder, target.root]):
        with TemporaryDirectory() as folder:
            findings = run_async(partial(inspect_root, place, Path(folder)))
        # of what the project shares only what is there
        checks += [check for check in findings if place == target.user_folder or check.count or not check.ok]
    return checks


_SHOWN_IDS = 3


def audit(
    *,
    act: Annotated[
        list[str] | None,
        typer.Option("--act", metavar="ACT", help="Only such acts: read, save, forget, … (can be repeated)."),
    ] = None,
    who: Annotated[str | None, typer.Option("--who", metavar="USER", help="Only what was done for this user.")] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Only what was done in this session.")
    ] = None,
    entry: Annotated[
        str | None, typer.Option("--entry", metavar="ID", help="Only acts on this memory, by its id or its beginning.")
    ] = None,
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="PART=NAME", help="Only the memory of this scope, such as team=core."),
    ] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="Only from this day or time on.")] = None,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only before this day or time.")] = None,
    limit: LimitOption = 50,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who read, wrote, promoted or forgot what, and when, newest first.

    The log names ids, scopes and counts, and never what a memory says. By default it records what was deleted; the
    setting audit.record has it record all changes, or also what is read. `ricordo doctor` says whether it was changed.
    """
    target = require_target(root, user, project)
    scope = _parse_scope(of) if of else None
    records = read_memory(
        target,
        lambda memory: memory.audit(
            acts=act or (), user=who, session=session, entry=entry, scope=scope, since=since, until=until, limit=limit
        ),
    )
    if as_json:
        print_json({"records": [_record_document(record) for record in records]})
        return
    if not records:
        print_line("The audit log has no such record.")
    for record in records:
        _print_record(record)


def _parse_scope(text: str) -> Scope:
    name, _, value = text.partition("=")
    try:
        return Scope(**{name: value})
    except TypeError as error:
        raise typer.BadParameter(f"{name!r} is no part of a scope: write team=core or user=ann.") from error


def _print_record(record: "AuditRecord") -> None:
    who = (record.who.user if record.who else None) or record.by or "somebody"
    by = f" by {record.by}" if record.by not in {"", "user"} else ""
    way = f" ({record.how})" if record.how else ""
    names = ", ".join([*record.ids[:_SHOWN_IDS], *record.paths[: 0 if record.ids else _SHOWN_IDS]])
    more = f" and {record.count - _SHOWN_IDS} more" if record.count > _SHOWN_IDS else ""
    print_line(f"{record.at.astimezone():%Y-%m-%d %H:%M:%S}  {escape(who)}  {escape(record.act)}{escape(way + by)}")
    print_line(dim(f"  {escape(names or str(record.count))}{more} in {escape(str(record.scope))}"))


def _record_document(record: "AuditRecord") -> "JsonValue":
    versions: dict[str, JsonValue] = {entry.id: entry.version for entry in record.entries if entry.version}
    scores: dict[str, JsonValue] = {entry.id: entry.score for entry in record.entries if entry.score is not None}
    return {
        "number": record.number,
        "at": record.at.isoformat(),
        "act": record.act,
        "by": record.by,
        "who": {**record.who.parts()} if record.who else None,
        "scope": {**record.scope.parts()} if record.scope else None,
        "count": record.count,
        "ids": [*record.ids],
        "versions": versions,
        "scores": scores,
        "how": record.how or None,
        "request": record.request or None,
        "change": record.change or None,
        "paths": [*record.paths],
        "lost": record.lost,
    }
