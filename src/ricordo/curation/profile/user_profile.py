"""UserProfile: operations of a person on a profile: show, search, add, change, pin and remove facts, import and export.

Each change is one change set and leaves all other parts unchanged. A removed fact is not learned again, and a fact that
a person added is never evicted.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import TypeVar

from anyio.to_thread import run_sync

from ricordo.clock import Clock
from ricordo.curation.config import InjectionConfig
from ricordo.curation.profile.facts import confirm_fact
from ricordo.curation.profile.importing import (
    PROFILE_VERSION,
    BackupStore,
    ForeignProfile,
    ImportMode,
    ImportPreference,
    ProfileImport,
    ProfileMigration,
    plan_import,
    plan_parsed_import,
)
from ricordo.curation.profile.rendering import RenderedProfile, find_facts, render_profile
from ricordo.curation.profile.storage import ProfileStore, SavedProfile
from ricordo.curation.profile.updates import remove_statement
from ricordo.errors import DuplicateFact, FactNotFound, InvalidFact, InvalidQuery, Unsupported, VersionConflict
from ricordo.guard.fence import is_blank
from ricordo.lazy import dataclass
from ricordo.messages.tokens import Tokens
from ricordo.workspace.history.tombstones import content_digest
from ricordo.workspace.profile import (
    HISTORY_SUMMARIES,
    USER_SUMMARIES,
    Fact,
    FactSource,
    ParsedProfile,
    Profile,
    ProfileSummary,
    create_fact_id,
    format_profile_time,
    render_printable_profile,
)

__all__ = ["FactPage", "UserProfile"]


MANUAL_SOURCE = "manual"
"""The source of a fact that a person added."""
_MAX_TEXT = 10_000
_MAX_CATEGORY = 100
_DIGEST_KEY = b""
_AUTHOR = "user"
_T = TypeVar("_T")


@dataclass(frozen=True, kw_only=True)
class FactPage:
    """A page of the matching facts: those from number `offset` on, of `total`."""

    facts: tuple[Fact, ...]
    total: int
    offset: int = 0


class UserProfile:
    """The profile of one scope, for a person. Every method may raise DocumentInvalid and StorageError."""

    def __init__(self, store: ProfileStore, *, clock: Clock, config: InjectionConfig | None = None) -> None:
        """Manage the profile in `store`; `config` says how prompts show it."""
        self._store = store
        self._clock = clock
        self._config = config or InjectionConfig()

    async def show(self) -> Profile:
        """Return the whole profile, an empty one if none was saved."""
        return await self._store.load()

    @property
    def unreadable_places(self) -> list[str]:
        """The parts of the document, such as `facts[3]`, that could not be read when it was last loaded."""
        return [each.location for each in self._store.broken_records]

    async def render(self, *, query: str | None = None, budget: Tokens | None = None) -> RenderedProfile:
        """Return the block that a prompt shows, within `budget` tokens, and which facts it shows and leaves out."""
        profile = await self._store.load()
        return await run_sync(partial(render_profile, profile, budget=budget, query=query, config=self._config))

    async def facts(
        self, *, query: str = "", category: str | None = None, limit: int | None = None, offset: int = 0
    ) -> FactPage:
        """Return the facts of a category that match `query`, best first; without a query in document order.

        Returns at most `limit` facts, all for None, from number `offset` on. Raises: InvalidQuery for a limit below 1
        or an offset below 0.
        """
        if (limit is not None and limit < 1) or offset < 0:
            raise InvalidQuery(f"A page has a limit of at least 1 and an offset of at least 0, not {limit}, {offset}.")
        matches = await run_sync(find_facts, (await self._store.load()).facts, query, category)
        return FactPage(facts=matches[offset:][:limit], total=len(matches), offset=offset)

    async def fact(self, fact_id: str) -> Fact:
        """Return one fact. Raises `FactNotFound`."""
        return _require_fact(await self._store.load(), fact_id)

    async def add_fact(
        self,
        content: str,
        *,
        category: str = "context",
        confidence: float = 1.0,
        source_error: str | None = None,
        valid_days: int | None = None,
        pinned: bool = False,
        merge: bool = True,
    ) -> Fact:
        """Add a fact and return it; `source_error` says what was wrong before, `valid_days` how many days it holds.

        If the profile has the same fact, up to case, white space and punctuation, that fact is confirmed and returned;
        without `merge` it is an error. Raises: InvalidFact; DuplicateFact.
        """
        base = await self._store.load()
        fact = _validate_fact(
            Fact(
                id=create_fact_id(content if isinstance(content, str) else "", [each.id for each in base.facts]),
                content=content,
                category=category,
                confidence=confidence,
                created_at=format_profile_time(self._clock.now()),
                source=FactSource(thread=MANUAL_SOURCE),
                source_error=source_error or None,
                valid_days=valid_days,
                pinned=pinned,
            )
        )
        duplicate = _find_same(base.facts, fact, merge=merge)
        if duplicate:
            return await self._save_fact(base, self._merge_fact(duplicate, fact), "confirmed")
        saved = await self._save(replace(base, facts=(*base.facts, fact)), base, f"{fact.id} added")
        # another writer may have added the same fact meanwhile; it is added once
        return saved.find_fact(fact.id) or next(
            each for each in saved.facts if _statement_digest(each) == _statement_digest(fact)
        )

    async def update_fact(
        self,
        fact_id: str,
        *,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        source_error: str | None = None,
        valid_days: int | None = None,
        revision: int | None = None,
        merge: bool = True,
    ) -> Fact:
        """Change the given fields of a fact and return it; an empty `source_error` or 0 `valid_days` clears the field.

        With `revision`, the fact must still have that revision. If another fact has the same content, both are merged
        and the merged fact is returned; without `merge` it is an error. Raises: FactNotFound, InvalidFact,
        DuplicateFact, VersionConflict.
        """
        base = await self._store.load()
        old = _require_fact(base, fact_id)
        if revision is not None and revision != old.revision:
            raise VersionConflict(f"{fact_id} has revision {old.revision} by now, not {revision}: look at it again.")
        fact = _validate_fact(
            replace(
                old,
                content=_value_or(content, old.content),
                category=_value_or(category, old.category),
                confidence=_value_or(confidence, old.confidence),
                source_error=_value_or(source_error, old.source_error) or None,
                valid_days=_value_or(valid_days, old.valid_days) or None,
            )
        )
        duplicate = (
            _find_same(base.facts, fact, merge=merge) if _statement_digest(fact) != _statement_digest(old) else None
        )
        if duplicate:
            rest = replace(base, facts=tuple(each for each in base.facts if each.id != fact.id))
            merged = self._merge_fact(duplicate, fact)
            facts = tuple(merged if each.id == merged.id else each for each in rest.facts)
            return _require_fact(await self._save(replace(rest, facts=facts), base, f"{fact.id} merged"), merged.id)
        return await self._save_fact(base, fact, "changed")

    async def pin(self, fact_id: str, *, on: bool = True) -> Fact:
        """Pin a fact, so that it is never evicted, or unpin it, and return it. Raises `FactNotFound`."""
        base = await self._store.load()
        return await self._save_fact(
            base, replace(_require_fact(base, fact_id), pinned=on), "pinned" if on else "unpinned"
        )

    async def remove_fact(self, fact_id: str, *, why: str = "") -> Fact:
        """Remove a fact and the sentences of the summaries that say it, and return the fact.

        It is not learned again; `undo` restores it. Raises `FactNotFound`.
        """
        base = await self._store.load()
        fact = _require_fact(base, fact_id)
        remaining = replace(base, facts=tuple(each for each in base.facts if each.id != fact_id))
        message = f"{fact_id} removed: {why}" if why else f"{fact_id} removed"
        await self._store.save(
            remove_statement(remaining, fact.content), base=base, by=_AUTHOR, why=message, forget=True
        )
        return fact

    async def set_summary(self, name: str, text: str) -> ProfileSummary:
        """Write a summary, such as `topOfMind`, and return it; an empty text clears it. Raises `InvalidFact`."""
        if name not in {*USER_SUMMARIES, *HISTORY_SUMMARIES}:
            raise InvalidFact(
                f"A profile has no summary {name!r}: it has {', '.join((*USER_SUMMARIES, *HISTORY_SUMMARIES))}."
            )
        if not isinstance(text, str) or len(text) > _MAX_TEXT:
            raise InvalidFact(f"A summary is a text of at most {_MAX_TEXT:,} characters.")
        base = await self._store.load()
        old = base.summaries[name]
        section = replace(old, summary=text.strip())
        saved = await self._save(replace(base, summaries={**base.summaries, name: section}), base, f"{name} written")
        return saved.summaries[name]

    async def replace_all(self, profile: Profile, *, base: Profile, why: str = "") -> SavedProfile:
        """Save `profile`, which a person edited from `base`; removed facts are not learned again.

        Raises: InvalidFact, DuplicateFact, VersionConflict.
        """
        before = {fact.id: fact for fact in base.facts}
        for index, fact in enumerate(profile.facts):
            if before.get(fact.id) != fact:
                _validate_fact(fact)
                _find_same(profile.facts[:index], fact, merge=False)
        return await self._store.save(profile, base=base, by=_AUTHOR, why=why, forget=True)

    async def clear(self, *, why: str = "") -> SavedProfile:
        """Forget the whole profile; none of it is learned again. An unreadable document is moved to another file."""
        return await self._store.clear(by=_AUTHOR, why=why)

    async def export_document(self) -> str:
        """Return the whole profile as JSON, in the format of DeerFlow's memory, without loss."""
        return await run_sync(render_printable_profile, await self._store.load())

    async def import_document(
        self,
        document: str | bytes,
        *,
        mode: ImportMode = "merge",
        prefer: ImportPreference | None = None,
        dry_run: bool = False,
    ) -> ProfileImport:
        """Import a profile in JSON and return the changes; with `dry_run` nothing is saved.

        `merge` adds what is missing; where both have a fact or a summary with different content, `prefer` says whether
        the `document` or the `profile` wins. `replace` makes the profile equal to the document. Raises: DocumentInvalid
        if part of it can't be read; VersionConflict, without `prefer`, which names the differences.
        """
        base = await self._store.load()
        plan = await run_sync(partial(plan_import, base, document, mode=mode, prefer=prefer))
        if dry_run:
            return plan
        _refuse_conflicts(plan, prefer)
        if not plan.changes_something:
            return plan
        saved = await self._store.save(plan.profile, base=base, by=_AUTHOR, why=f"import, {mode}")
        return replace(plan, profile=saved.profile, is_saved=True)

    async def migrate(
        self, source: ForeignProfile | None = None, *, prefer: ImportPreference | None = None, dry_run: bool = False
    ) -> ProfileMigration:
        """Import a profile of another system, or upgrade our own document to the current version without `source`.

        The source is backed up permanently before any change, and is never modified; a second migration changes
        nothing. With `dry_run` nothing is saved. Raises: DocumentInvalid if part of it can't be read; VersionConflict,
        without `prefer`, if it contradicts the profile; Unsupported if the store can't back up.
        """
        base = await self._store.load()
        if not isinstance(self._store, BackupStore):
            raise Unsupported("This store of profiles keeps no backups, so nothing can be migrated into it.")
        data = await self._store.read_document() if source is None else source.data
        if source is None:
            parsed = ParsedProfile(profile=replace(base, version=PROFILE_VERSION))
        else:
            parsed = replace(source.read, profile=replace(source.read.profile, version=PROFILE_VERSION))
        mode: ImportMode = "replace" if source is None else "merge"
        plan = await run_sync(partial(plan_parsed_import, base, parsed, mode=mode, prefer=prefer))
        _refuse_conflicts(plan, prefer if not dry_run else "profile")
        if dry_run or data is None or not plan.changes_something:
            return ProfileMigration(imported=plan)
        backup = await self._store.back_up(data)
        saved = await self._store.save(plan.profile, base=base, by=_AUTHOR, why="migration")
        return ProfileMigration(imported=replace(plan, profile=saved.profile, is_saved=True), backup=backup)

    def _merge_fact(self, existing: Fact, fact: Fact) -> Fact:
        confirmed = confirm_fact(
            existing, fact.source, confidence=fact.confidence, error=fact.source_error, now=self._clock.now()
        )
        return replace(confirmed, pinned=existing.pinned or fact.pinned)

    async def _save_fact(self, base: Profile, fact: Fact, action: str) -> Fact:
        facts = tuple(fact if each.id == fact.id else each for each in base.facts)
        return _require_fact(await self._save(replace(base, facts=facts), base, f"{fact.id} {action}"), fact.id)

    async def _save(self, profile: Profile, base: Profile, why: str) -> Profile:
        return (await self._store.save(profile, base=base, by=_AUTHOR, why=why)).profile


def _require_fact(profile: Profile, fact_id: str) -> Fact:
    fact = profile.find_fact(fact_id)
    if fact is None:
        raise FactNotFound(f"The profile has no fact {fact_id!r}: `ricordo profile show` shows the ids.")
    return fact


def _refuse_conflicts(plan: ProfileImport, prefer: ImportPreference | None) -> None:
    if plan.conflicts and prefer is None:
        names = ", ".join(plan.conflicts)
        raise VersionConflict(f"The document says something else about {names}: name what to prefer.")


def _value_or(value: _T | None, old: _T) -> _T:
    return old if value is None else value


def _validate_fact(fact: Fact) -> Fact:
    """Return the fact with trimmed texts. Raises `InvalidFact`."""
    if not isinstance(fact.content, str) or is_blank(fact.content) or len(fact.content.strip()) > _MAX_TEXT:
        raise InvalidFact(f"The content of a fact is a text of 1 to {_MAX_TEXT:,} characters.")
    if not isinstance(fact.category, str) or not 0 < len(fact.category.strip()) <= _MAX_CATEGORY:
        raise InvalidFact(f"The category of a fact is a text of 1 to {_MAX_CATEGORY} characters.")
    value: object = fact.confidence
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or not 0 <= value <= 1:
        raise InvalidFact(f"The confidence of a fact is a number from 0 to 1, not {value!r}.")
    if fact.source_error is not None and (not isinstance(fact.source_error, str) or len(fact.source_error) > _MAX_TEXT):
        raise InvalidFact(f"What was wrong before is a text of at most {_MAX_TEXT:,} characters.")
    days: object = fact.valid_days
    if days is not None and (isinstance(days, bool) or not isinstance(days, int) or days < 1):
        raise InvalidFact(f"A fact holds for a whole number of days of at least 1, not {days!r}.")
    return replace(fact, content=fact.content.strip(), category=fact.category.strip(), confidence=float(value))


def _find_same(facts: Sequence[Fact], fact: Fact, *, merge: bool) -> Fact | None:
    """Return another fact with the same content. Raises `DuplicateFact` without `merge`."""
    duplicate = next(
        (each for each in facts if each.id != fact.id and _statement_digest(each) == _statement_digest(fact)), None
    )
    if duplicate and not merge:
        raise DuplicateFact(f"The profile says this already: it is {duplicate.id}.")
    return duplicate


def _statement_digest(fact: Fact) -> str:
    """Return a digest that is equal for facts with the same words."""
    return content_digest(fact.content, _DIGEST_KEY)
