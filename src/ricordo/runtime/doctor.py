"""Doctor: checks of every part of a root that report problems and what to do about them.

It writes to nothing but the index, which it brings up to date. Opening a root first rolls back interrupted changes, so
only those that could not be rolled back are found here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, get_args
from urllib.parse import unquote

from anyio.to_thread import run_sync

from ricordo.context.prompt import read_agents_file
from ricordo.curation.config import ConsolidationConfig
from ricordo.curation.marks import EntryUpdate
from ricordo.curation.memory_document import DocumentPart, parse_memory_document
from ricordo.curation.placement import is_movable
from ricordo.curation.quality_checks import (
    DOUBT_DETAILS,
    Doubt,
    check_entries,
    check_instructions,
    check_secrets,
    find_doubts,
)
from ricordo.curation.run_state import delete_pending_proposal, load_pending_proposal
from ricordo.curation.topics import TOPIC_LIST_LINE, TOPICS
from ricordo.errors import FileMissing, InvalidInput, InvalidMessage, InvalidQuery, StorageError
from ricordo.extraction.cursor import check_unlearned
from ricordo.jobs import JobQueue, JobRecord
from ricordo.jobs.contract import find_unresolved_failures
from ricordo.jobs.tasks.codec import decode_tasks
from ricordo.jobs.tasks.store import find_blocked_paths
from ricordo.lazy import lazy_compile
from ricordo.messages import json_text as jsontext
from ricordo.runtime import Workspace
from ricordo.runtime.user_migration import check_user_migration
from ricordo.search.config import DEFAULT_DECAY, DecayConfig
from ricordo.search.contract import SearchIndex
from ricordo.search.memory_root import MemoryRoot
from ricordo.storage import ABSENT, FileStore
from ricordo.stores.contract import LayeredMemory
from ricordo.workspace.entry import Entry
from ricordo.workspace.entry_codec import parse_entries
from ricordo.workspace.history.change_sets import count_pending
from ricordo.workspace.history.checks import Check, check_history, find_broken_profiles, find_damage
from ricordo.workspace.history.erase import list_unfinished
from ricordo.workspace.history.log import PERSON
from ricordo.workspace.layout import (
    LEDGERS,
    MEMORY_PATH,
    QUEUE_FILE,
    ROOT_TASKS,
    WORKSPACE,
    is_memory,
    parse_transcript_path,
)
from ricordo.workspace.ledger import is_curated, read_all_entries
from ricordo.workspace.markdown import is_utf8
from ricordo.workspace.profile import FACT_TAG
from ricordo.workspace.transcript import read_transcript

__all__ = [
    "Check",
    "Verb",
    "check_inbox",
    "check_memory",
    "check_root",
    "decide_doubt",
    "find_due_doubts",
    "find_inactive_rules",
]


_RULE_LIKE = lazy_compile(rb"(?<![\\`])(?:\[\s*rule\s*:|\(\s*rule\s*::)", re.IGNORECASE)


def find_inactive_rules(path: str, document: bytes) -> list[int]:
    """Return the numbers, from 1 and in order, of lines with a rule that is not in force; fenced code has none."""
    if not _RULE_LIKE.search(document):
        return []
    lines: list[int] = []
    line_number = 1
    for part in parse_memory_document(document, path).parts:
        lines += [line_number + part.data[:start].count(b"\n") for start in _find_inactive(part)]
        line_number += part.data.count(b"\n")
    return lines


def _find_inactive(part: DocumentPart) -> list[int]:
    """Return the offsets of inactive rules in a part; of a bullet's rules only the one on its last line is active."""
    offsets = [match.start() for match in _RULE_LIKE.finditer(part.data)]
    if part.entry is None:
        return [] if part.fenced else offsets
    if not part.entry.is_rule:
        return offsets
    active = max((start for start in offsets if part.data.startswith(b"[", start)), default=0)
    return [start for start in offsets if start < active]


_MAX_DAMAGE = 5
_MAX_DOCUMENT_BYTES = 4 * 1024 * 1024
_DOCUMENT_PATH = lazy_compile(
    rf"{WORKSPACE}/(?!agents/[^/]+/(?:sessions|state|tasks)/|large_tool_results/).+\.(?:md|txt|json)"
)
_TOPIC_LINK = lazy_compile(rb"\]\((?:\./)?(memory/topics/[^)\s]+\.md)\)")
_SET_ASIDE_INBOX = lazy_compile(rf"{re.escape(QUEUE_FILE)}\.broken-\d+")
_JOURNAL_PATH = lazy_compile(r"/compactions/[^/]+\.jsonl\Z")
_TASKS_PATH = lazy_compile(r"/tasks/[^/]+\.json\Z")
_SET_ASIDE_TASKS = lazy_compile(r"/tasks/[^/]+\.json\.broken-\d+\Z")
_SET_ASIDE_ROOT_TASKS = lazy_compile(rf"{re.escape(ROOT_TASKS)}\.broken-\d+")
_SET_ASIDE_STATE = lazy_compile(r"/state/[^/]+\.json\.broken-\d+\Z")


async def check_root(
    files: FileStore,
    index: SearchIndex,
    *,
    now: datetime,
    consolidation: ConsolidationConfig | None = None,
    decay: DecayConfig = DEFAULT_DECAY,
) -> list[Check]:
    """Return the checks of one root at `now`, in a fixed order; `consolidation` has the bounds of MEMORY.md."""
    documents = await _read_documents(files)
    return [
        *await check_entries(files, now, decay),
        _check_readable(documents, await files.list_unreadable(WORKSPACE)),
        _check_encoding(documents),
        await run_sync(_check_damage, documents),
        await run_sync(
            check_secrets, documents, await _read_other_documents(files, documents), await _list_paths(files)
        ),
        await run_sync(_check_rules, documents),
        await run_sync(_check_bounds, documents.get(MEMORY_PATH), consolidation or ConsolidationConfig()),
        await _check_topics(files, documents.get(MEMORY_PATH)),
        *await _check_agents(files),
        await _check_profiles(files),
        await _check_pending_changes(files),
        *await check_history(files),
        await _check_inboxes(files),
        *await _check_erasing(files),
        *await _check_index(index),
    ]


async def check_memory(
    workspace: Workspace, places: Sequence[MemoryRoot], *, consolidation: ConsolidationConfig | None
) -> list[Check]:
    """Check an open memory: its `places`, the inbox, and AGENTS.md beside the root.

    For all places but the one of its sessions, only problems are returned, prefixed with the label of the place.
    """
    narrowest, *wider = [
        (
            place,
            await check_root(
                place.files, place.index, now=place.clock.now(), consolidation=consolidation, decay=place.recall.decay
            ),
        )
        for place in sorted(places, key=lambda place: place.label != workspace.memory_root.label)
    ]
    problems = [(place, check) for place, checks in wider for check in checks if check.count or not check.ok]
    labelled = [replace(check, detail=f"{place.label}: {check.detail}") for place, check in problems]
    files = workspace.shared or workspace.memory_root.files
    users = await check_user_migration(files, workspace.folder.name if workspace.scope.user else "")
    backlog = [await check_unlearned(workspace.inbox, narrowest[0].files)] if workspace.flush.config.is_enabled else []
    agents_file = await _check_agents_file(workspace.root.parent)
    return [
        *narrowest[1],
        *[check for place in places for check in await _check_audit_log(place)],
        *agents_file,
        await check_inbox(workspace.inbox),
        *backlog,
        *([users] if users else []),
        *labelled,
    ]


async def _check_audit_log(place: MemoryRoot) -> list[Check]:
    """Check that no record of a place's audit log was changed or removed; return no check without a log."""
    if place.audit is None:
        return []
    breaks = await place.audit.find_breaks()
    detail = f"{place.label}: places where the audit log does not hold"
    if breaks:
        detail += f": someone changed it, or the power failed: {'; '.join(breaks[:_MAX_DAMAGE])}"
    return [Check(name="audit", ok=not breaks, count=len(breaks), detail=detail)] if breaks else []


async def _check_agents_file(folder: Path) -> list[Check]:
    """Check AGENTS.md, which people write for agents; return no check if there is no such file."""
    instructions = await read_agents_file(folder)
    return [check_instructions(instructions.source, instructions.text)] if instructions else []


async def check_inbox(inbox: JobQueue) -> Check:
    """Check the inbox: the number of waiting or running jobs, and permanently failed jobs not done since."""
    try:
        newest_first = await inbox.jobs(limit=1000)
    except StorageError as error:
        return Check(name="inbox", ok=False, count=0, detail=f"the inbox can't be used: {error}")
    waiting = [record for record in newest_first if record.state in {"waiting", "running"}]
    failed = [
        f"{record.job.kind} {record.job.session}".rstrip() + f": {_job_error(record)}"
        for record in find_unresolved_failures(newest_first)
    ]
    detail = "jobs that wait in the inbox"
    if failed:
        failures = ", ".join(failed)
        detail += f"; {len(failed)} failed too often, and `ricordo maintain --retry` tries them again: {failures}"
    return Check(name="inbox", ok=not failed, count=len(waiting), detail=detail)


def _job_error(record: JobRecord) -> str:
    return (record.outcome.error if record.outcome else None) or "no error is known"


async def _read_documents(files: FileStore) -> dict[str, bytes | None]:
    """Return the memory documents by path; None for one that can't be read."""
    documents: dict[str, bytes | None] = {}
    for path in [MEMORY_PATH, *(info.path for info in await files.list(LEDGERS) if is_memory(info.path))]:
        try:
            documents[path] = (await files.read(path)).data
        except FileMissing:
            continue
        except StorageError:
            documents[path] = None
    return documents


async def _read_other_documents(files: FileStore, memory_documents: Mapping[str, object]) -> dict[str, bytes]:
    """Return the other files of the workspace that people edit, by path: rules, plans, notes, sessions, profiles."""
    documents: dict[str, bytes] = {}
    for info in await files.list(WORKSPACE):
        if info.path in memory_documents or not _DOCUMENT_PATH.fullmatch(info.path) or info.size > _MAX_DOCUMENT_BYTES:
            continue
        try:
            documents[info.path] = (await files.read(info.path)).data
        except (FileMissing, StorageError):
            continue
    return documents


async def _list_paths(files: FileStore) -> list[str]:
    return [info.path for info in await files.list(WORKSPACE)]


def _check_readable(documents: Mapping[str, bytes | None], folders: Sequence[str]) -> Check:
    unreadable = [*(path for path, data in documents.items() if data is None), *folders]
    detail = "files and folders that can't be read" + (f": {', '.join(unreadable)}" if unreadable else "")
    return Check(name="files", ok=not unreadable, count=len(unreadable), detail=detail)


def _check_encoding(documents: Mapping[str, bytes | None]) -> Check:
    broken = [path for path, data in documents.items() if data is not None and not is_utf8(data)]
    detail = "files that are not UTF-8"
    if broken:
        detail += f" throughout, and are changed by nothing here until they are saved as UTF-8: {', '.join(broken)}"
    return Check(name="encoding", ok=not broken, count=len(broken), detail=detail)


def _check_damage(documents: Mapping[str, bytes | None]) -> Check:
    """Check for text that can't be parsed; a long entry may hold any text."""
    damage = [
        f"{path}: {each}"
        for path, data in documents.items()
        if data and is_utf8(data) and not path.startswith(f"{LEDGERS}/long/")
        for each in find_damage(data, parse_entries(data, path))
    ]
    detail = "places in memory files that were cut off or can't be read"
    examples = "; ".join(damage[:_MAX_DAMAGE]) + ("; and more" if damage[_MAX_DAMAGE:] else "")
    return Check(name="damage", ok=not damage, count=len(damage), detail=f"{detail}: {examples}" if damage else detail)


def _check_rules(documents: Mapping[str, bytes | None]) -> Check:
    """Check the tool call rules that people wrote into files."""
    inactive = [
        f"{path}:{line}"
        for path, data in documents.items()
        if data and not path.startswith(f"{LEDGERS}/long/")
        for line in find_inactive_rules(path, data)
    ]
    detail = "rules of memories that are not in force"
    if inactive:
        detail += ": write `[rule:: deny shell(git push --force*)]`, or `ask`, at the end of a bullet of your own, "
        detail += f"with `\\[` for a bracket in it: {', '.join(inactive)}"
    return Check(name="rules", ok=not inactive, count=len(inactive), detail=detail)


def _check_bounds(memory: bytes | None, config: ConsolidationConfig) -> Check:
    """Check the size of MEMORY.md, naming the exceeded bound and who can shorten the file."""
    bounds, document = config.bounds, memory or b""
    exceeded = bounds.find_exceeded(document)
    if exceeded is None:
        return Check(name="curated", ok=True, count=0, detail="MEMORY.md is within its bounds")
    parts = parse_memory_document(document, MEMORY_PATH).parts
    by_hand = b"".join(part.data for part in parts if not is_movable(part))
    detail = (
        f"MEMORY.md has {bounds.measure(document, exceeded):,} {exceeded} and prompts show at most "
        f"{bounds.limit(exceeded):,} {exceeded} of it,"
        " without what is of least use: `ricordo consolidate` moves what has no room to topics"
    )
    if bounds.find_exceeded(by_hand):
        detail += ", but not what you wrote or pinned, which is too much by itself: put some of it into a topic of your"
        detail += " own, such as memory/topics/NAME.md"
    return Check(name="curated", ok=True, count=1, detail=detail)


async def _check_topics(files: FileStore, memory: bytes | None) -> Check:
    """Check the topics; if consolidation's own list is outdated, its next run repairs it."""
    existing = {info.path.removeprefix(f"{WORKSPACE}/") for info in await files.list(TOPICS)}
    lines = (memory or b"").splitlines()
    missing = sorted(_linked_topics(lines) - existing)
    by_hand = _linked_topics(line for line in lines if not TOPIC_LIST_LINE.match(line)) - existing
    detail = "topics that MEMORY.md names and that are not there: "
    detail += "restore the file, or remove the line" if by_hand else "the next consolidation lists what there is"
    if missing:
        detail += f": {', '.join(missing)}"
    return Check(name="topics", ok=not by_hand, count=len(missing), detail=detail)


def _linked_topics(lines: Iterable[bytes]) -> set[str]:
    return {unquote(link.decode("utf-8", "replace")) for line in lines for link in _TOPIC_LINK.findall(line)}


async def _check_agents(files: FileStore) -> list[Check]:
    """Check the records of agents: transcripts, states that could not be read, and compactions."""
    paths = [info.path for info in await files.list(f"{WORKSPACE}/agents")]
    set_aside = [path for path in paths if _SET_ASIDE_STATE.search(path)]
    detail = "agent states that could not be read and were set aside"
    if set_aside:
        detail += f"; their sessions go on from the transcript, and the files may go: {', '.join(set_aside)}"
    states = Check(name="states", ok=True, count=len(set_aside), detail=detail)
    journals = await _check_journals(files, [path for path in paths if _JOURNAL_PATH.search(path)])
    transcripts = await _check_transcripts(files, [path for path in paths if parse_transcript_path(path)])
    return [*transcripts, states, journals, await _check_tasks(files, paths)]


async def _check_profiles(files: FileStore) -> Check:
    """Check the profiles for unreadable records, and for files set aside."""
    broken, set_aside = await find_broken_profiles(files)
    detail = "records of profiles that can't be read"
    if broken:
        detail = f"places in profiles that can't be read; the rest is used, and they are kept: {'; '.join(broken)}"
    if set_aside:
        set_aside_note = f"records that could not be read are kept, and the files may go: {', '.join(set_aside)}"
        detail = f"{detail}; {set_aside_note}" if broken else f"files of {set_aside_note}"
    return Check(name="profile", ok=not broken, count=len(broken) + len(set_aside), detail=detail)


async def _check_tasks(files: FileStore, paths: Sequence[str]) -> Check:
    """Check the task files among `paths`, and the one of the root."""
    set_aside = [path for path in paths if _SET_ASIDE_TASKS.search(path)]
    set_aside += [info.path for info in await files.list(WORKSPACE) if _SET_ASIDE_ROOT_TASKS.fullmatch(info.path)]
    broken = [
        path
        for path in [*filter(_TASKS_PATH.search, paths), ROOT_TASKS]
        if not await _is_task_file_readable(files, path)
    ]
    broken += await find_blocked_paths(files, paths)
    detail = "task files that can't be read or were set aside"
    if broken or set_aside:
        detail += f"; the tasks in them are not listed, and they may go: {', '.join([*broken, *set_aside])}"
    return Check(name="tasks", ok=True, count=len(broken) + len(set_aside), detail=detail)


async def _is_task_file_readable(files: FileStore, path: str) -> bool:
    """Return whether a task file can be read; a missing file counts as readable."""
    try:
        await run_sync(decode_tasks, (await files.read(path)).data)
    except FileMissing:
        return True
    except StorageError:
        return False
    return True


async def _check_transcripts(files: FileStore, logs: Sequence[str]) -> list[Check]:
    broken = [(path, await _count_broken_lines(files, path)) for path in logs]
    broken_count = sum(count for _, count in broken)
    places = ", ".join(path for path, count in broken if count)
    return [
        Check(name="sessions", ok=True, count=len(logs), detail="transcripts"),
        Check(
            name="lines",
            ok=broken_count == 0,
            count=broken_count,
            detail=f"transcript lines that can't be read, in {places}"
            if broken_count
            else "transcript lines that can't be read",
        ),
    ]


async def _count_broken_lines(files: FileStore, path: str) -> int:
    """Return the number of unreadable lines of a transcript; an unreadable file counts as one."""
    try:
        return len((await read_transcript(files, path)).broken)
    except StorageError:
        return 1


async def _check_journals(files: FileStore, paths: Sequence[str]) -> Check:
    broken = [(path, await _count_broken_records(files, path)) for path in paths]
    broken_count = sum(count for _, count in broken)
    detail = "lines of compaction journals that can't be read"
    if broken_count:
        places = ", ".join(path for path, count in broken if count)
        detail += f"; what they held can't be undone, nothing else is lost, and the files may go: {places}"
    return Check(name="journals", ok=True, count=broken_count, detail=detail)


async def _count_broken_records(files: FileStore, path: str) -> int:
    """Return the number of invalid lines in a journal; an unreadable file counts as one."""
    try:
        data = (await files.read(path)).data
    except FileMissing:
        return 0
    except StorageError:
        return 1
    return await run_sync(lambda: sum(not _is_journal_record(line) for line in data.split(b"\n") if line.strip()))


def _is_journal_record(line: bytes) -> bool:
    """Return whether a line names a compaction and the window before it, or an undone compaction."""
    try:
        fields = jsontext.require_object(jsontext.loads(line), "The line")
    except (InvalidMessage, ValueError):
        return False
    is_compaction = isinstance(fields.get("handle"), str) and isinstance(fields.get("before"), list)
    return is_compaction or isinstance(fields.get("undone"), str)


async def _check_pending_changes(files: FileStore) -> Check:
    pending = await count_pending(files)
    detail = "changes cut off half-way that could not be put back: what they kept is damaged"
    return Check(name="changes", ok=pending == 0, count=pending, detail=detail)


async def _check_inboxes(files: FileStore) -> Check:
    set_aside = [info.path for info in await files.list() if _SET_ASIDE_INBOX.fullmatch(info.path)]
    detail = "inboxes that could not be read and were set aside"
    if set_aside:
        detail += f"; what waited in them was asked for again, and the files may go: {', '.join(set_aside)}"
    return Check(name="inboxes", ok=True, count=len(set_aside), detail=detail)


async def _check_erasing(files: FileStore) -> list[Check]:
    """Check for unfinished erasures; no check is returned if there are none."""
    unfinished = await list_unfinished(files)
    entries, texts = (
        [name for name, text in unfinished.items() if not text],
        [name for name, text in unfinished.items() if text],
    )
    remedies = [f"`ricordo erase ID` finishes it: {', '.join(entries)}"] if entries else []
    remedies += [f"`ricordo erase --text` with the same text finishes it: {', '.join(texts)}"] if texts else []
    detail = f"erased in part only, {'; '.join(remedies)}"
    return [Check(name="erasing", ok=False, count=len(unfinished), detail=detail)] if unfinished else []


async def _check_index(index: SearchIndex) -> list[Check]:
    """Check the index after bringing it up to date; a further check tells of texts that have no vector."""
    report = await index.refresh()
    freshness = index.freshness()
    is_broken = freshness.state == "broken"
    detail = f"the index is {freshness}"
    if report.failed and not is_broken:
        detail += f"; what can't be read is found as it was before: {', '.join(sorted(report.failed)[:_MAX_DAMAGE])}"
    if report.quarantined:
        detail += f"; a damaged one was put aside as {report.quarantined} and made anew"
    check = Check(name="index", ok=not is_broken, count=freshness.stale_files, detail=detail)
    if not freshness.not_embedded and not freshness.embedding_error:
        return [check]
    why = f": {freshness.embedding_error}" if freshness.embedding_error else ""
    found_by_words = f"{freshness.not_embedded:,} passages have no vector yet and are found by their words{why}"
    mend = "; `ricordo maintain` embeds them"
    return [check, Check(name="vectors", ok=True, count=freshness.not_embedded, detail=f"{found_by_words}{mend}")]


Verb: TypeAlias = Literal["accept", "reject", "merge", "edit", "later"]
_POSTPONED = f"{LEDGERS}/.review_state"
PROPOSAL_ID = "proposal"
"""The id by which a consolidation that waits for approval is decided."""


async def find_due_doubts(workspace: Workspace, layers: LayeredMemory, kinds: Sequence[str] = ()) -> list[Doubt]:
    """Return the doubtful memories of what prompts show, and what waits: a consolidation, and memories from outside.

    What was put off is left out. Raises: InvalidQuery for an unknown kind.
    """
    if unknown := [kind for kind in kinds if kind not in DOUBT_DETAILS]:
        raise InvalidQuery(f"There is no doubt of the kind {unknown[0]!r}: the kinds are {', '.join(DOUBT_DETAILS)}.")
    place = workspace.memory_root
    curated = {
        one.entry.id
        for each in await layers.places()
        for one in await read_all_entries(each.files)
        if is_curated(one.path)
    }
    entries = await layers.entries()
    shown = [
        entry
        for entry in entries
        if entry.id in curated or FACT_TAG in entry.tags or entry.is_external or entry.shared_by
    ]
    usage = await place.usage.read_all() if place.usage else {}
    now = place.clock.now()
    doubts = await _find_pending_proposal(workspace, now)
    doubts += await run_sync(partial(find_doubts, shown, now=now, usage=usage, decay=place.recall.decay))
    postponed = await _read_postponed(place)
    is_due = {doubt.id: postponed.get(doubt.id, "") <= now.isoformat() for doubt in doubts}
    return [doubt for doubt in doubts if is_due[doubt.id] and (not kinds or doubt.kind in kinds)]


async def _find_pending_proposal(workspace: Workspace, now: datetime) -> list[Doubt]:
    """Return the consolidation that waits for approval, as a doubt of its own; empty if none does."""
    pending = await load_pending_proposal(workspace.memory_root.files)
    if pending is None or workspace.curation is None:
        return []
    proposal = await workspace.curation.consolidator.preview(deep=pending.deep, use_model=False, advice=pending.advice)
    counts = [(proposal.kept, "curated"), (proposal.merged, "merged"), (proposal.superseded, "superseded")]
    changes = ", ".join(f"{len(each):,} {name}" for each, name in [*counts, (proposal.retired, "retired")] if each)
    content = f"A consolidation waits: {changes or 'nothing changes'}. `ricordo consolidate --dry-run` shows its lines."
    reason = "it is written only after approval"
    return [
        Doubt(kind="proposal", reason=reason, entry=Entry(content=content, kind="proposal", id=PROPOSAL_ID, time=now))
    ]


async def _decide_proposal(workspace: Workspace, verb: Verb) -> None:
    """Approve or drop the consolidation that waits. Raises: InvalidInput if it can't be decided so."""
    if workspace.curation is None or await load_pending_proposal(workspace.memory_root.files) is None:
        raise InvalidInput("No consolidation waits for approval.")
    if verb not in {"accept", "reject"}:
        raise InvalidInput("A consolidation that waits is accepted, rejected or put off as a whole.")
    if verb == "reject":
        await delete_pending_proposal(workspace.memory_root.files)
        return
    result = await workspace.curation.approve(who=PERSON)
    if result.skipped:
        raise InvalidInput(f"The consolidation was not carried out: {result.skipped}.")


async def decide_doubt(
    workspace: Workspace, layers: LayeredMemory, entry_id: str, verb: Verb, *, text: str, days: int
) -> Entry:
    """Carry out a decision as `Memory.decide` describes it."""
    proposals = await _find_pending_proposal(workspace, workspace.memory_root.clock.now())
    entry = proposals[0].entry if proposals and entry_id == PROPOSAL_ID else await layers.get(entry_id)
    if entry.id == PROPOSAL_ID and verb != "later":
        await _decide_proposal(workspace, verb)
        return entry
    if verb == "later":
        place = workspace.memory_root
        until = (place.clock.now() + timedelta(days=days)).isoformat()
        await _write_postponed(place, {**await _read_postponed(place), entry.id: until})
        return entry
    if verb == "edit":
        if not text.strip():
            raise InvalidInput("Give the text that the memory has from now on.")
        return await layers.update_entry(entry.id, EntryUpdate(content=text), who=PERSON)
    doubt = next((each for each in await find_due_doubts(workspace, layers) if each.id == entry.id), None)
    if doubt and doubt.kind == "stale":
        # what is accepted or rejected is that the newer one takes the place of the older one
        verb = "merge" if verb == "accept" else "accept" if verb == "reject" else verb
    if verb == "reject":
        return await layers.forget(entry.id, who=PERSON, why="rejected in a review")
    if verb == "accept":
        if doubt and doubt.other:
            await layers.mark_entry(doubt.other.id, "confirm", who=PERSON)
        return await layers.mark_entry(entry.id, "confirm", who=PERSON)
    if verb != "merge":
        raise InvalidInput(f"{verb!r} decides nothing: the verbs are {', '.join(get_args(Verb))}.")
    if doubt is None or doubt.other is None:
        raise InvalidInput(f"{entry.id} is compared with no other memory, so there is nothing to merge it with.")
    await layers.merge_entries(entry.id, doubt.other.id, who=PERSON)
    return entry


async def _read_postponed(place: MemoryRoot) -> dict[str, str]:
    """Return until when doubts are put off, by their ids; empty if the file is missing or damaged."""
    with suppress(FileMissing, InvalidMessage, StorageError):
        rows = jsontext.loads((await place.files.read(_POSTPONED)).data)
        return {name: until for name, until in rows.items() if isinstance(until, str)} if isinstance(rows, dict) else {}
    return {}


async def _write_postponed(place: MemoryRoot, rows: Mapping[str, str]) -> None:
    info = await place.files.info(_POSTPONED)
    version = (await place.files.read(_POSTPONED)).version if info else ABSENT
    await place.files.replace(_POSTPONED, jsontext.dumps({**rows}).encode(), expected=version)
