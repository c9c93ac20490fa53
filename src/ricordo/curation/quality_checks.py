"""Checks of entries: junk, duplicates, stale and contradicting memories, secrets, and dangling links.

A loss or a leak is a failure: a missing file of a long entry, a duplicate id, a secret. The rest is a note, because
consolidation and use correct it; only a large share of junk is a failure too. The time is linear in the number of
entries.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial

from anyio.to_thread import run_sync

from ricordo.curation.change_model import OUTDATED_THRESHOLD
from ricordo.curation.conflicts import outdates, score_change
from ricordo.curation.contradictions import RelatedEntryIndex, dismissed_id, is_confirmed_beside
from ricordo.curation.importance import MERGED_FIELD, entry_time, field_ids
from ricordo.errors import FileMissing, StorageError
from ricordo.guard import contains_fence, has_secret
from ricordo.guard.scanner import find_secrets
from ricordo.language import content_words, points_back
from ricordo.language.acts import is_acknowledgement
from ricordo.language.duplicates import DUPLICATE_THRESHOLD, is_same_statement, statement_key
from ricordo.lazy import dataclass, lazy_compile
from ricordo.search.config import DEFAULT_DECAY, DecayConfig
from ricordo.storage import FileStore
from ricordo.workspace.entry import QUARANTINE_FIELD, Entry, find_contradictions
from ricordo.workspace.entry_codec import LocatedEntry, parse_entries
from ricordo.workspace.history.checks import Check
from ricordo.workspace.history.usage import MemoryUsage, read_usage
from ricordo.workspace.layout import USAGE, WORKSPACE, is_profile, parse_transcript_path
from ricordo.workspace.ledger import is_curated, read_all_entries
from ricordo.workspace.markdown import unescape
from ricordo.workspace.profile import locate_facts

__all__ = [
    "DOUBT_DETAILS",
    "Doubt",
    "check_entries",
    "check_instructions",
    "check_secrets",
    "check_store_entries",
    "count_secrets",
    "find_doubts",
    "find_duplicates",
    "find_sourceless",
    "is_junk",
    "is_stale",
]


_MAX_POSTINGS = 100
_MAX_COMPARED = 24
_MIN_SHARED = 0.4
_RARE_WORD_SHARE = 0.4
_END_FIELDS = frozenset({"until", "expires", "valid-until", "valid_until"})
_RENDERED_ITEM = lazy_compile(r'<[a-z][a-z0-9_-]*-item source="[^"\n]*" trust="[a-z]+"')


def is_junk(entry: Entry) -> bool:
    """Tell whether an entry is worthless; a rule for tool calls is never junk."""
    if entry.rule is not None:
        return False
    return is_acknowledgement(entry.content) or _is_rendered_memory(entry.content) or not content_words(entry.content)


def is_stale(entry: Entry, usage: MemoryUsage | None, now: datetime, decay: DecayConfig = DEFAULT_DECAY) -> bool:
    """Tell whether an entry is past its time and unused.

    Pinned entries and rules are never stale, nor are superseded and retired ones.
    """
    if entry.pinned or entry.rule is not None or entry.state != "active":
        return False
    if any(end is not None and end < now for end in map(_parse_end, entry.extra)):
        return True
    if entry.confirmed is None and entry.time is None:
        return False
    if usage and (usage.used.count or usage.confirmed.count):
        return False
    last = max(filter(None, (entry.confirmed, entry.time)))
    return now - last > timedelta(days=decay.half_life(entry.kind, entry.confirmations))


def find_duplicates(entries: Sequence[Entry], *, merged: Collection[str] = ()) -> set[str]:
    """Return the ids of entries that say the same as an earlier one, without those that were `merged`.

    Each entry is compared only with entries that share one of its rarest words, and with a few dozen of these at most.
    """
    first: dict[str, str] = {}
    duplicate_ids: set[str] = set()
    texts: list[tuple[str, str]] = []
    for entry in {each.id: each for each in entries if each.id not in merged}.values():
        key = statement_key(entry.content)
        if key in first:
            duplicate_ids.add(entry.id)
        else:
            first[key] = entry.id
            texts.append((entry.id, entry.content))
    return duplicate_ids | _find_similar(texts)


def count_secrets(entries: Iterable[Entry]) -> int:
    """Return the number of entries with a secret in their text."""
    return sum(has_secret(entry.content) for entry in entries)


def find_sourceless(entries: Iterable[Entry], sessions: Collection[str]) -> set[str]:
    """Return the ids of entries that were learned from a conversation missing in `sessions`."""
    extracted = (entry for entry in entries if entry.by == "flush" and entry.source.session)
    return {entry.id for entry in extracted if entry.source.session not in sessions}


def _is_rendered_memory(text: str) -> bool:
    return contains_fence(text) or _RENDERED_ITEM.search(text) is not None


def _parse_end(field: tuple[str, str]) -> datetime | None:
    name, value = field
    if name not in _END_FIELDS:
        return None
    try:
        end = datetime.fromisoformat(value)
    except ValueError:
        return None
    return end if end.tzinfo else end.replace(tzinfo=UTC)


def _find_similar(texts: Sequence[tuple[str, str]]) -> set[str]:
    """Return the ids of the texts that are similar to an earlier one."""
    words = [frozenset(content_words(text)) for _, text in texts]
    word_counts = Counter(word for each in words for word in each)
    seen: dict[str, list[int]] = {}
    similar_ids: set[str] = set()
    for number, (entry_id, text) in enumerate(texts):
        rare_words = _rarest_words(words[number], word_counts)
        posted = dict.fromkeys(other for word in rare_words for other in seen.get(word, ())[-_MAX_POSTINGS:])
        candidates = [other for other in posted if _jaccard(words[number], words[other]) >= _MIN_SHARED]
        if any(is_same_statement(text, texts[other][1]) for other in candidates[:_MAX_COMPARED]):
            similar_ids.add(entry_id)
            continue
        for word in rare_words:
            seen.setdefault(word, []).append(number)
    return similar_ids


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / (len(one | other) or 1)


def _rarest_words(words: Collection[str], word_counts: Mapping[str, int]) -> list[str]:
    """Return enough of the rarest words that two similar statements share one of them."""
    max_words = int(len(words) * _RARE_WORD_SHARE) + 2
    return sorted(words, key=lambda word: (word_counts[word], word))[:max_words]


_MIN_JUNK = 20
_JUNK_SHARE = 5
_MAX_PAIRS = 3
_MAX_PLACES = 20


async def check_entries(files: FileStore, now: datetime, decay: DecayConfig = DEFAULT_DECAY) -> list[Check]:
    """Return the checks of all memories of a root at the time `now`."""
    located = await read_all_entries(files)
    missing = [path for path in _long_paths(located) if await files.info(f"{WORKSPACE}/{path}") is None]
    sessions = await _list_sessions(files)
    usage = await _read_usage(files)
    checks = await run_sync(
        partial(_build_checks, located, now=now, usage=usage, sessions=sessions, missing=missing, decay=decay)
    )
    external = [one.entry for one in located if one.entry.is_external and not is_curated(one.path)]
    shown = await _read_curated(files, located)
    return [*checks, *await run_sync(partial(_check_doubts, [*shown, *external], now, usage, decay))]


async def _read_curated(files: FileStore, located: Sequence[LocatedEntry]) -> list[Entry]:
    """Return what prompts show: the entries of curated memory, and the facts of profiles."""
    facts: list[Entry] = []
    for path in [info.path for info in await files.list(WORKSPACE) if is_profile(info.path)]:
        with suppress(FileMissing, StorageError):
            facts += [one.entry for one in await run_sync(locate_facts, (await files.read(path)).data, path)]
    return [*(one.entry for one in located if is_curated(one.path)), *facts]


def check_secrets(
    documents: Mapping[str, bytes | None], others: Mapping[str, bytes], file_paths: Sequence[str] = ()
) -> Check:
    """Return the check for secrets in memory documents and in `others` that people write, with the affected lines.

    The count is of memories, and of lines in files without an affected memory. `file_paths` are paths whose names are
    checked too.
    """
    lines = {path: _find_secret_lines(data) for path, data in {**documents, **others}.items() if data}
    affected = {path: line_numbers for path, line_numbers in lines.items() if line_numbers}
    count = sum(
        _count_secret_entries(documents.get(path), path) or len(line_numbers) for path, line_numbers in affected.items()
    )
    detail = "memories and lines of files with a secret in them; no model is shown it and no index holds it, but the "
    detail += "file does: take it out there, and change it"
    places = [f"{path}:{number}" for path, line_numbers in affected.items() for number in line_numbers]
    folders = [path.rpartition("/")[0] for path in file_paths if has_secret(path)]
    places += [f"the name of a file in {folder}/ (it is not searched: rename it)" for folder in folders]
    count += len(folders)
    listed_places = [*places[:_MAX_PLACES], *(["and more"] if places[_MAX_PLACES:] else [])]
    return Check(name="secrets", ok=not places, count=count, detail=_list_details(detail, listed_places))


def check_instructions(name: str, text: str) -> Check:
    """Return the check for secrets in a person's instructions for the agent, in a file outside of the root."""
    lines = _find_secret_lines(text.encode())
    detail = "lines of instructions with a secret in them; no model is shown it, but the file holds it: take it out "
    detail += "there, and change it"
    places = [f"{name}:{number}" for number in lines[:_MAX_PLACES]]
    return Check(name="instructions", ok=not lines, count=len(lines), detail=_list_details(detail, places))


def _find_secret_lines(data: bytes) -> list[int]:
    """Return the numbers of the lines on which a secret begins, from 1, without duplicates."""
    text = unescape(data.decode("utf-8", "replace"))
    return sorted({text.count("\n", 0, span.start) + 1 for span in find_secrets(text)})


def _count_secret_entries(data: bytes | None, path: str) -> int:
    return count_secrets(located.entry for located in parse_entries(data, path)) if data else 0


def check_store_entries(entries: Sequence[Entry], *, now: datetime) -> list[Check]:
    """Return the checks of the memories of any store that need no files."""
    duplicate_ids = find_duplicates(entries)
    return [
        Check(name="entries", ok=True, count=len(entries), detail="memories in the store"),
        _check_junk(entries, set()),
        Check(name="duplicates", ok=True, count=len(duplicate_ids), detail="memories that say the same as another"),
        _check_stale(entries, set(), now, {}),
        _check_store_secrets(entries),
    ]


def _build_checks(
    located: Sequence[LocatedEntry],
    *,
    now: datetime,
    usage: Mapping[str, MemoryUsage],
    sessions: Collection[str],
    missing: Sequence[str],
    decay: DecayConfig,
) -> list[Check]:
    # consolidation leaves an entry in its ledger, and the curated line has the same id
    ids = Counter((item.entry.id, is_curated(item.path)) for item in located)
    duplicate_count = sum(count - 1 for count in ids.values())
    curated = {item.entry.id for item in located if is_curated(item.path)}
    # the curated version wins over that of the ledger
    entries = list(
        {item.entry.id: item.entry for item in sorted(located, key=lambda one: is_curated(one.path))}.values()
    )
    merged = {name for item in located for name in field_ids(item.entry, MERGED_FIELD)}
    duplicate_ids = find_duplicates(entries, merged=merged)
    return [
        Check(name="entries", ok=True, count=len(entries), detail="memories in MEMORY.md, topics and ledgers"),
        _check_junk(entries, curated),
        _count_check("duplicates", "memories that say the same as another", duplicate_ids, curated),
        _check_stale(entries, curated, now, usage, decay),
        _check_contradictions(entries),
        Check(
            name="ids",
            ok=duplicate_count == 0,
            count=duplicate_count,
            detail="ids that stand twice: remove one of the lines",
        ),
        _check_dangling(missing, find_sourceless(entries, sessions)),
    ]


def _count_check(name: str, detail: str, ids: Collection[str], curated: Collection[str]) -> Check:
    curated_count = len(set(ids).intersection(curated))
    full_detail = f"{detail}; {curated_count:,} of them in curated memory" if curated_count else detail
    return Check(name=name, ok=True, count=len(ids), detail=full_detail)


def _check_junk(entries: Sequence[Entry], curated: Collection[str]) -> Check:
    junk_ids = [entry.id for entry in entries if is_junk(entry)]
    detail = "memories that are worth nothing: an acknowledgement, text that was only recalled, no word with a meaning"
    check = _count_check("junk", detail, junk_ids, curated)
    if len(junk_ids) >= _MIN_JUNK and len(junk_ids) * _JUNK_SHARE > len(entries):
        advice = (
            f"{check.detail}. That is more than a fifth: see what learns from your conversations, and `ricordo forget`"
        )
        return Check(name="junk", ok=False, count=len(junk_ids), detail=advice)
    return check


def _check_stale(
    entries: Iterable[Entry],
    curated: Collection[str],
    now: datetime,
    usage: Mapping[str, MemoryUsage],
    decay: DecayConfig = DEFAULT_DECAY,
) -> Check:
    stale_ids = [entry.id for entry in entries if is_stale(entry, usage.get(entry.id), now, decay)]
    return _count_check(
        "stale", "memories past their time that nobody has used: `ricordo confirm` or `forget`", stale_ids, curated
    )


def _check_contradictions(entries: Sequence[Entry]) -> Check:
    links = find_contradictions(entries)
    pairs = sorted({tuple(sorted((name, other))) for name, others in links.items() for other in others})
    detail = "pairs of memories that contradict each other, and no rule decides: `ricordo confirm` or `forget` one"
    return Check(
        name="contradictions",
        ok=True,
        count=len(pairs),
        detail=_list_details(detail, [*map(" and ".join, pairs[:_MAX_PAIRS])]),
    )


def _check_dangling(missing: Sequence[str], sourceless_ids: Collection[str]) -> Check:
    parts = []
    if missing:
        parts.append(f"{len(missing):,} long memories whose file is missing, so that only the first line is left")
    if sourceless_ids:
        parts.append(f"{len(sourceless_ids):,} memories learned from conversations that are not kept any more")
    detail = "memories that point to what is not there"
    full_detail = f"{detail}: {'; '.join(parts)}" if parts else detail
    return Check(name="dangling", ok=not missing, count=len(missing) + len(sourceless_ids), detail=full_detail)


def _check_store_secrets(entries: Sequence[Entry]) -> Check:
    count = count_secrets(entries)
    return Check(name="secrets", ok=count == 0, count=count, detail="memories with a secret in them")


def _long_paths(located: Iterable[LocatedEntry]) -> list[str]:
    return sorted({item.long_path for item in located if item.long_path})


async def _list_sessions(files: FileStore) -> set[str]:
    paths = [info.path for info in await files.list(f"{WORKSPACE}/agents")]
    return {parsed[1] for parsed in map(parse_transcript_path, paths) if parsed}


async def _read_usage(files: FileStore) -> Mapping[str, MemoryUsage]:
    try:
        data = (await files.read(USAGE)).data
    except (FileMissing, StorageError):
        return {}
    read: Callable[[bytes], Mapping[str, MemoryUsage]] = read_usage
    return await run_sync(read, data)


def _list_details(detail: str, paths: Collection[str]) -> str:
    return f"{detail}: {', '.join(paths)}" if paths else detail


_MIN_SURE = 0.65
"""Learned memories below this confidence, which is the relevance that the rules gave them, are likely noise."""
_FEWEST_WORDS = 2
_MAX_EXAMPLES = 3
_OUTSIDE_REASONS = "it comes from a tool or a web page", "it comes from an import"
_EXAMPLE_CHARS = 60
DOUBT_DETAILS: Mapping[str, str] = {
    "proposal": "consolidations that wait for approval",
    "quarantine": "memories that give orders to an assistant, and wait unseen until you accept them",
    "contradiction": "pairs of memories that contradict each other",
    "stale": "pairs that look like an old and a new statement",
    "duplicate": "memories that say the same as a fact of the profile or as another one",
    "fragment": "memories that are not understood alone",
    "outside": "memories from tools, web pages or imports that nobody confirmed",
    "noise": "memories that are likely worth nothing",
    "unused": "memories past their time that nobody has used",
}
"""The kinds of doubt, the most urgent first, and what doctor says of each."""
_DOUBT_CHECKS = {
    "quarantine": "quarantine",
    "stale": "outdated",
    "duplicate": "repeated",
    "fragment": "fragments",
    "outside": "unconfirmed",
    "noise": "noise",
    "unused": "unused",
}
"""The name of the check of each kind that no other check counts."""


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A memory that a person should look at: its `kind` is one of `DOUBT_DETAILS`, `reason` says why it is doubtful.

    `entry` is the doubtful memory, in a pair the older one; `other` is the memory that it is compared with.
    """

    kind: str
    reason: str
    entry: Entry
    other: Entry | None = None

    @property
    def id(self) -> str:
        """The id by which it is decided: that of the doubtful memory."""
        return self.entry.id


def find_doubts(
    entries: Sequence[Entry],
    *,
    now: datetime,
    usage: Mapping[str, MemoryUsage] | None = None,
    decay: DecayConfig = DEFAULT_DECAY,
) -> list[Doubt]:
    """Return what is doubtful among active memories, the most urgent kind first, each memory once.

    Memories that a person confirmed, pinned or wrote are doubtful only in a contradiction or a pair.
    """
    active = [entry for entry in entries if entry.state == "active" and entry.rule is None]
    by_id = {entry.id: entry for entry in active}
    doubts = [
        Doubt(kind="quarantine", reason=dict(entry.extra).get(QUARANTINE_FIELD, "it waits"), entry=entry)
        for entry in entries
        if entry.state == "quarantined"
    ]
    for name, others in find_contradictions(active).items():
        pair = sorted((by_id[each] for each in (name, *others[:1]) if each in by_id), key=_said_key)
        if len(pair) > 1 and not all(each.confirmed for each in pair):
            doubts.append(_pair_doubt("contradiction", "contradicts a later memory, and no rule decides", *pair[:2]))
    # what a tool said changes nothing that somebody else said
    doubts += _find_pairs([entry for entry in active if not entry.is_external])
    for entry in active:
        if entry.is_external and entry.by != "flush":
            doubts.append(Doubt(kind="outside", reason=_OUTSIDE_REASONS[entry.by == "import"], entry=entry))
        if entry.confirmed or entry.pinned or entry.by != "flush":
            continue
        if points_back(entry.content):
            doubts.append(
                Doubt(kind="fragment", reason="it points back to something that it does not name", entry=entry)
            )
        elif len(set(content_words(entry.content))) <= _FEWEST_WORDS or entry.content.rstrip().endswith("?"):
            doubts.append(Doubt(kind="fragment", reason="it has too few words of its own", entry=entry))
        elif entry.is_external:
            doubts.append(Doubt(kind="outside", reason=_OUTSIDE_REASONS[0], entry=entry))
        elif is_junk(entry) or entry.confidence < _MIN_SURE:
            reason = f"its relevance is {entry.confidence:.2f}, below {_MIN_SURE}"
            doubts.append(Doubt(kind="noise", reason=reason, entry=entry))
        elif is_stale(entry, (usage or {}).get(entry.id), now, decay):
            doubts.append(Doubt(kind="unused", reason="it is past its time, and nobody has used it", entry=entry))
    order = {kind: number for number, kind in enumerate(DOUBT_DETAILS)}
    first: dict[str, Doubt] = {}
    for doubt in sorted(doubts, key=lambda doubt: (order[doubt.kind], doubt.id)):
        first.setdefault(doubt.id, doubt)
    return [*first.values()]


def _find_pairs(active: Sequence[Entry]) -> list[Doubt]:
    """Return the pairs that say the same, and those that look like an old and a new statement."""
    index, earlier, doubts = RelatedEntryIndex(DUPLICATE_THRESHOLD), dict[str, Entry](), list[Doubt]()
    marked = {entry.id: entry.maybe_outdated_by for entry in active if entry.maybe_outdated_by}
    for entry in active:
        index.add(entry)
    for entry in sorted(active, key=_said_key):
        candidates = {*index.find_same(entry), *index.find_on_subject(entry), *index.find_with_values(entry)}
        candidates = (candidates | {name for name, by in marked.items() if by == entry.id}) & earlier.keys()
        for name in sorted(candidates):
            older = earlier[name]
            if (older.confirmed and entry.confirmed) or older.superseded_by == entry.id:
                continue
            if is_same_statement(entry.content, older.content):
                doubts.append(_pair_doubt("duplicate", "a later memory says the same", older, entry))
            elif _may_be_outdated(older, entry, index):
                doubts.append(_pair_doubt("stale", "a later memory seems to replace it", older, entry))
        earlier[entry.id] = entry
    return doubts


def _may_be_outdated(older: Entry, newer: Entry, index: RelatedEntryIndex) -> bool:
    """Tell whether `older` is marked, or likely enough outdated for a person to decide, and nobody has decided."""
    if is_confirmed_beside(older, newer) or dismissed_id(older) == newer.id:
        return False
    if older.maybe_outdated_by == newer.id:
        return True
    score = score_change(newer, older, index.rarity)
    return score >= OUTDATED_THRESHOLD or outdates(newer, older, index.rarity, score) > 0


def _pair_doubt(kind: str, reason: str, older: Entry, newer: Entry) -> Doubt:
    return Doubt(kind=kind, reason=reason, entry=older, other=newer)


def _said_key(entry: Entry) -> tuple[datetime, str]:
    return entry_time(entry), entry.id


def _check_doubts(
    entries: Sequence[Entry], now: datetime, usage: Mapping[str, MemoryUsage], decay: DecayConfig
) -> list[Check]:
    """Return a check for each kind of doubt that no other check counts, with examples and the command."""
    doubts = find_doubts(entries, now=now, usage=usage, decay=decay)
    checks = []
    for kind, name in _DOUBT_CHECKS.items():
        found = [doubt for doubt in doubts if doubt.kind == kind]
        detail = DOUBT_DETAILS[kind]
        if found:
            examples = [f"{doubt.id} {_shorten_example(doubt.entry.content)}" for doubt in found[:_MAX_EXAMPLES]]
            detail += f": `ricordo review --kind {kind}` decides; {'; '.join(examples)}"
        checks.append(Check(name=name, ok=True, count=len(found), detail=detail))
    return checks


def _shorten_example(content: str) -> str:
    line = " ".join(content.split())
    return line if len(line) <= _EXAMPLE_CHARS else f"{line[: _EXAMPLE_CHARS - 1].rstrip()}…"
