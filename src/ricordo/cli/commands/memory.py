"""`memory list`, `show`, `search`, `track` and `untrack`: look at memories, and say whether git sees them.

A root hides all of itself from git. Only a person's explicit word lets git see MEMORY.md and the topics; transcripts,
ledgers, keys and caches stay hidden also then.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.json_output import entry_document, hit_document
from ricordo.cli.memory_output import (
    FileLocation,
    SourceMessage,
    explain_hits,
    load_contradictions,
    load_source_messages,
    locate_entry,
    print_conflicts,
    print_hits,
)
from ricordo.cli.options import (
    AroundOption,
    AsOfOption,
    EntryId,
    JsonOption,
    KindOption,
    LimitOption,
    MetadataOption,
    ProjectOption,
    RootOption,
    SinceOption,
    TagOption,
    UntilOption,
    UserOption,
    WhyOption,
    YesOption,
    parse_metadata,
    parse_time,
)
from ricordo.cli.render import bold, dim, escape, format_age, print_json, print_line, wrap
from ricordo.cli.target import read_memory, require_target, run_async
from ricordo.errors import FileMissing, InvalidInput
from ricordo.lazy import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from ricordo.messages.types import JsonValue
    from ricordo.runtime.memory import Memory
    from ricordo.search.config import DecayConfig
    from ricordo.workspace.entry import Entry

__all__ = ["list_memories", "search", "show", "track", "untrack"]


_MAX_CONTENT_CHARS = 300
_MIN_SUFFIX_CHARS = 6
_SCOPE_WIDTHS = ("project", "everywhere")
_FADED_STATES = frozenset({"ended", "faded", "fading"})


def _check_scope(scope: str) -> str:
    from ricordo.scope import Scope

    names = {field.name for field in fields(Scope)}
    name, equals, value = scope.partition("=")
    if scope not in {"", *_SCOPE_WIDTHS} and not (equals and name in names and value):
        raise typer.BadParameter(f"{scope!r} is no scope: write project, everywhere, or a part such as user=me.")
    return scope


_Id = Annotated[str, typer.Option("--id", metavar="ID", show_default=False, help="Only ids that begin or end so.")]
_Source = Annotated[
    str,
    typer.Option(
        "--source",
        "--by",
        metavar="SOURCE",
        show_default=False,
        help="Only from here: user, agent, flush (learned from messages), import, hand (written into a file), "
        "or the id of a session.",
    ),
]
_Scope = Annotated[
    str,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        callback=_check_scope,
        show_default=False,
        help="Only of this scope: project, everywhere (all of the user's projects), or a part such as user=me.",
    ),
]
_OlderThan = Annotated[
    datetime | None,
    typer.Option("--older-than", parser=parse_time, metavar="AGE", help="Only older: 7d, or saved before 2026-11-22."),
]
_NewerThan = Annotated[
    datetime | None,
    typer.Option("--newer-than", parser=parse_time, metavar="AGE", help="Only newer: 7d, or saved since 2026-11-22."),
]


@dataclass(frozen=True, kw_only=True)
class _EntryFilter:
    """What `memory list` lets through; what is empty lets everything through."""

    part: str
    kinds: Sequence[str]
    tags: Sequence[str]
    source: str
    scope: str
    before: datetime | None
    after: datetime | None
    rules: bool
    metadata: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether it does not let everything through."""
        return any(getattr(self, each.name) for each in fields(self))

    def matches(self, entry: "Entry") -> bool:
        """Return whether the filter lets `entry` through."""
        return (
            (entry.id.startswith(self.part) or entry.id.endswith(self.part))
            and (not self.kinds or entry.kind in self.kinds)
            and (not self.tags or not set(self.tags).isdisjoint(entry.tags))
            and (not self.source or self.source in {entry.by, entry.source.session})
            and (not self.scope or _has_scope(entry, self.scope))
            and (self.before is None or (entry.time is not None and entry.time < self.before))
            and (self.after is None or (entry.time is not None and entry.time >= self.after))
            and (not self.rules or entry.rule is not None)
            and all(entry.metadata.get(name) in values for name, values in self.metadata.items())
        )


def list_memories(
    context: typer.Context,
    *,
    part: _Id = "",
    kind: KindOption = None,
    tag: TagOption = None,
    metadata: MetadataOption = None,
    source: _Source = "",
    scope: _Scope = "",
    older_than: _OlderThan = None,
    newer_than: _NewerThan = None,
    rules: Annotated[bool, typer.Option("--rules", help="Only rules for tool calls.")] = False,
    as_of: AsOfOption = None,
    limit: LimitOption = 100,
    after: Annotated[str, typer.Option("--after", metavar="ID", help="Only what is listed after this memory.")] = "",
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything that is remembered, newest first.

    Each memory with its id, kind, age, source and scope, then its text. For pages, give the last id of the page before
    to --after.
    """
    entry_filter = _EntryFilter(
        part=part,
        kinds=kind or (),
        tags=tag or (),
        source=source,
        scope=scope,
        before=older_than,
        after=newer_than,
        rules=rules,
        metadata=parse_metadata(metadata),
    )
    from ricordo.search.config import DecayConfig

    # a chat over a store other than the root's own gives the entries of that store
    remembered: Sequence[Entry] | None = context.obj
    target = require_target(root, user, project) if remembered is None else None
    if target is not None and as_of is None and not entry_filter and not after:
        page = read_memory(target, lambda memory: _read_page(memory, limit))
    else:
        if target is not None:
            remembered = read_memory(target, lambda memory: memory.entries(as_of=as_of))
        page = _make_page(remembered or (), entry_filter, limit, after)
    decay = target.settings.decay if target else DecayConfig()
    if as_json:
        documents = [entry_document(entry, decay, page.contradictions.get(entry.id, ())) for entry in page.entries]
        print_json({"total": page.total, "left": page.left, "entries": [*documents]})
        return
    if not page.entries:
        print_line("No more memories match." if after else "No memory matches.")
        return
    size = _distinct_suffix_length(page.ids)
    for entry in page.entries:
        _print_entry(entry, size, page.contradictions.get(entry.id, ()), decay)
    if page.left:
        print_line(dim(f"… and {page.left:,} more: --limit shows them, or --after {page.entries[-1].id[-size:]}"))
    show_command = "ricordo memory show" if context.obj is None else "/memory show"
    print_line(dim(f"\nThe last {size} characters of an id are enough: {show_command} {page.entries[0].id[-size:]}"))


@dataclass(frozen=True, kw_only=True)
class _ListedPage:
    """The listed entries, of `total` that match, of which `left` come after them.

    `ids` are those of all entries, and `contradictions` are by id.
    """

    entries: "Sequence[Entry]"
    total: int
    left: int
    ids: Sequence[str]
    contradictions: Mapping[str, Sequence[str]]


async def _read_page(memory: "Memory", limit: int) -> _ListedPage:
    from ricordo.runtime.finding import read_entry_page

    page = await read_entry_page(memory, limit)
    return _ListedPage(
        entries=page.entries,
        total=len(page.ids),
        left=len(page.ids) - len(page.entries),
        ids=page.ids,
        contradictions=page.contradictions,
    )


def _make_page(remembered: "Sequence[Entry]", entry_filter: _EntryFilter, limit: int, after: str) -> _ListedPage:
    from ricordo.workspace.entry import find_contradictions
    from ricordo.workspace.ledger import resolve_id

    ids = [entry.id for entry in remembered]
    start = ids.index(resolve_id(ids, after)) + 1 if after else 0
    rest = [entry for entry in remembered[start:] if entry_filter.matches(entry)]
    return _ListedPage(
        entries=rest[:limit],
        total=sum(map(entry_filter.matches, remembered)),
        left=len(rest[limit:]),
        ids=ids,
        contradictions=find_contradictions(remembered),
    )


def show(
    *,
    entry_id: EntryId,
    as_of: AsOfOption = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one memory and what it rests on.

    All its fields, its file and line, and the lines of the conversation that it was learned from.
    """
    from ricordo.workspace.entry import CONTRADICTS_FIELD, OUTDATED_BY_FIELD, OUTDATED_FIELD

    target = require_target(root, user, project)

    async def look(memory: "Memory") -> "tuple[Entry, FileLocation | None, list[SourceMessage], list[Entry]]":
        if as_of is not None:
            past_entry = await memory.entry(entry_id, as_of=as_of)
            return past_entry, None, await load_source_messages(target, memory, past_entry), []
        entry = await memory.mark_used(entry_id, how="show")
        others = await load_contradictions(memory, entry.id)
        return entry, await locate_entry(target, entry.id), await load_source_messages(target, memory, entry), others

    entry, position, origins, others = read_memory(target, look)
    if as_json:
        rests_on: list[JsonValue] = [
            {"message": each.message.id, "file": each.position.file, "line": each.position.line} for each in origins
        ]
        file, line = (position.file, position.line) if position else (None, None)
        print_json(
            {
                **entry_document(entry, target.settings.decay, [other.id for other in others]),
                "file": file,
                "line": line,
                "rests_on": rests_on,
            }
        )
        return
    print_line(wrap(entry.content))
    for name, value in _entry_fields(entry, position, target.settings.decay):
        if value and name not in {CONTRADICTS_FIELD, OUTDATED_BY_FIELD, OUTDATED_FIELD}:
            print_line(f"  {dim(f'{name:<13}')} {escape(value)}")
    print_conflicts(entry, others)
    for origin in origins:
        print_line(f"\n{dim('said in')} {escape(str(origin.position))} {dim('by')} {escape(_speaker_name(origin))}")
        same_words = entry.content if entry.content in origin.message.text else origin.message.text
        print_line(wrap(_shorten(entry.source.quote or same_words), "  "))


def search(
    *,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Plain words.")],
    limit: LimitOption = 10,
    kind: KindOption = None,
    tag: TagOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    session: Annotated[str, typer.Option("--session", metavar="ID", help="Only what was said in this session.")] = "",
    path: Annotated[
        str, typer.Option("--path", metavar="PATH", help="Only files whose path in the root begins so.")
    ] = "",
    why: WhyOption = False,
    around: AroundOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search memories, conversations and notes, best first."""
    target = require_target(root, user, project)
    if why:
        explain_hits(
            target, query, as_json=as_json, limit=limit, kinds=kind or (), tags=tag or (), since=since, until=until,
            session=session, path=path, everything=True, around=around,
        )  # fmt: skip
        return
    from ricordo.search.contract import Query

    memory_query = Query(
        text=query, kinds=tuple(kind or ()), tags=tuple(tag or ()), since=since, until=until, session=session, path=path
    )
    hits = read_memory(
        target, lambda memory: memory.search(memory_query, limit=limit, around=around or as_json), finds=True
    )
    if as_json:
        print_json({"query": query, "hits": [hit_document(hit, target) for hit in hits]})
    else:
        print_hits(hits, target)


def _distinct_suffix_length(ids: Sequence[str]) -> int:
    """Return how many characters at the end tell these ids apart, six or more."""
    size = _MIN_SUFFIX_CHARS
    while len({each[-size:] for each in ids}) < len(set(ids)):
        size += 1
    return size


def _print_entry(entry: "Entry", size: int, contradicts: Sequence[str], decay: "DecayConfig") -> None:
    from ricordo.search.config import measure_decay
    from ricordo.workspace.entry import outdated_marker

    source = f"{entry.by} {entry.source.session}" if entry.source.session else entry.by
    tags = "".join(f" #{tag}" for tag in entry.tags)
    scope = str(entry.scope) if entry.scope else "-"
    name = f"{dim(escape(entry.id[:-size]))}{bold(escape(entry.id[-size:]))}"
    state = measure_decay(entry, datetime.now(UTC), decay).state
    facts = [escape(entry.kind), format_age(entry.time), *([state] if state in _FADED_STATES else []), escape(source)]
    print_line("  ".join([name, *facts, dim(escape(scope))]))
    print_line(wrap(f"{_shorten(entry.content)}{tags}", "  "))
    if entry.rule:
        print_line(dim(wrap(f"rule: {_format_rule(entry)}", "  ")))
    if entry.state != "active":
        print_line(dim(wrap(_format_state(entry), "  ")))
    if entry.valid_until:
        then = f", then superseded by {entry.superseded_by}" if entry.state == "active" and entry.superseded_by else ""
        print_line(dim(wrap(escape(f"valid until {entry.valid_until}{then}"), "  ")))
    if marker := outdated_marker(entry):
        print_line(dim(wrap(marker, "  ")))
    if contradicts:
        print_line(dim(wrap(f"contradicts {', '.join(contradicts)}: not decided", "  ")))


def _entry_fields(entry: "Entry", position: FileLocation | None, decay: "DecayConfig") -> list[tuple[str, str]]:
    from ricordo.search.config import measure_decay
    from ricordo.workspace.entry import STARTS_FIELD, SUCCESSOR_FIELD, UNTIL_FIELD

    return [
        ("id", entry.id),
        ("kind", entry.kind),
        ("tags", ", ".join(entry.tags)),
        ("saved", _format_time(entry.time)),
        ("since", _format_time(entry.since)),
        ("observed", _format_time(entry.said_at)),
        ("valid from", str(entry.valid_from or "")),
        ("valid until", str(entry.valid_until or "")),
        ("by", entry.by),
        ("scope", str(entry.scope or "")),
        ("reason", entry.reason or ""),
        ("rule", _format_rule(entry)),
        ("confidence", f"{entry.confidence:g}"),
        ("state", entry.state),
        ("supersedes", entry.supersedes or ""),
        ("superseded by", f"{entry.superseded_by}{' then' * (entry.state == 'active' and bool(entry.superseded_by))}"),
        ("pinned", "yes" if entry.pinned else ""),
        ("confirmed", _format_time(entry.confirmed)),
        ("decay", measure_decay(entry, datetime.now(UTC), decay).explanation),
        ("session", entry.source.session or ""),
        ("messages", ", ".join(entry.source.messages)),
        ("origin", entry.source.origin or ""),
        ("file", str(position or "")),
        *(pair for pair in entry.extra if pair[0] not in {STARTS_FIELD, UNTIL_FIELD, SUCCESSOR_FIELD}),
    ]


def _format_state(entry: "Entry") -> str:
    """Say that a memory holds no more, and what took its place, or why it waits."""
    if entry.state == "quarantined":
        why = dict(entry.extra).get("quarantine", "nobody has accepted it")
        return escape(f"in quarantine: {why}. `ricordo review accept {entry.id}` or `reject` decides")
    by = f" by {entry.superseded_by}" if entry.superseded_by else ""
    return escape(f"{entry.state}{by}")


def _format_rule(entry: "Entry") -> str:
    return f"{entry.rule or ''}{'' if entry.is_rule or not entry.rule else ' (not in force: no person made it)'}"


def _has_scope(entry: "Entry", scope: str) -> bool:
    parts = entry.scope.parts() if entry.scope else {}
    if scope in _SCOPE_WIDTHS:
        return ("project" in parts) == (scope == "project")
    name, _, value = scope.partition("=")
    return parts.get(name) == value


def _format_time(time: datetime | None) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M:%S %z} ({format_age(time)} ago)" if time else ""


def _speaker_name(origin: SourceMessage) -> str:
    return origin.message.name or origin.message.role


def _shorten(content: str) -> str:
    return content if len(content) <= _MAX_CONTENT_CHARS else f"{content[: _MAX_CONTENT_CHARS - 1].rstrip()}…"


def track(
    *,
    yes: YesOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let git see the curated memory: MEMORY.md and the topics, nothing else.

    Whoever sees the repository can then read them. It asks first; without a terminal it needs --yes.
    """
    target = require_target(root, user, project)
    if not yes:
        if not sys.stdin.isatty() or as_json:
            raise InvalidInput("Letting git see the memory needs a confirmation: give --yes.")
        print_line(f"git will see MEMORY.md and memory/topics in {escape(str(target.root / 'workspace'))}.")
        print_line("Once committed, everybody who sees the repository can read them.")
        typer.confirm("Let git see them?", abort=True)
    from ricordo.runtime.trust import IGNORE_ALL_BUT_CURATED

    _write_gitignore(target.root, IGNORE_ALL_BUT_CURATED)
    _print_tracked("git sees MEMORY.md and memory/topics now; nothing was added or committed.", as_json, tracked=True)


def untrack(
    *,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hide all of the root from git again; what was committed stays in its history."""
    target = require_target(root, user, project)
    from ricordo.runtime.trust import IGNORE_ALL

    _write_gitignore(target.root, IGNORE_ALL)
    _print_tracked(
        "git sees nothing of the root. `git rm --cached` takes out what was added before.", as_json, tracked=False
    )


def _write_gitignore(root: "Path", rule: bytes) -> None:
    from ricordo.runtime.workspace import root_files
    from ricordo.storage import ABSENT
    from ricordo.workspace.layout import IGNORE_FILE

    async def replace() -> None:
        files = root_files(root)
        try:
            version = (await files.read(IGNORE_FILE)).version
        except FileMissing:
            version = ABSENT
        await files.replace(IGNORE_FILE, rule, expected=version)

    run_async(replace)


def _print_tracked(message: str, as_json: bool, *, tracked: bool) -> None:
    if as_json:
        print_json({"tracked": tracked})
    else:
        print_line(message)
