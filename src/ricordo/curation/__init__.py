"""Curation: turns ledgers into curated memory and a profile of the user, and removes expired memories."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.curation.config import ConsolidationConfig, InjectionConfig, ProfileConfig
    from ricordo.curation.consolidator import NOTHING_NEW, Consolidator
    from ricordo.curation.forget import forget_entries, has_backups
    from ricordo.curation.marks import (
        EntryUpdate,
        confirm_entries,
        mark_entry,
        mark_fact,
        merge_into,
        supersede_entries,
        update_entry,
        update_fact,
    )
    from ricordo.curation.profile.storage import FileProfileStore, InMemoryProfileStore
    from ricordo.curation.profile.updater import ProfileUpdater
    from ricordo.curation.profile.updates import NewFact, ProfileUpdate, UpdateLabels, UpdateResult
    from ricordo.curation.profile.user_profile import UserProfile
    from ricordo.curation.proposal import ConsolidationInput, find_faults, propose
    from ricordo.curation.retention import archive_faded
    from ricordo.curation.run_state import CURSOR_PATH
    from ricordo.curation.scope_change import move_entry
    from ricordo.curation.session_removal import remove_session
    from ricordo.curation.types import CandidateEntry, ConsolidationResult
    from ricordo.curation.undo import resolve_history_item, undo_change

__all__ = [
    "CURSOR_PATH",
    "NOTHING_NEW",
    "CandidateEntry",
    "ConsolidationConfig",
    "ConsolidationInput",
    "ConsolidationResult",
    "Consolidator",
    "EntryUpdate",
    "FileProfileStore",
    "InMemoryProfileStore",
    "InjectionConfig",
    "NewFact",
    "ProfileConfig",
    "ProfileUpdate",
    "ProfileUpdater",
    "UpdateLabels",
    "UpdateResult",
    "UserProfile",
    "archive_faded",
    "confirm_entries",
    "find_faults",
    "forget_entries",
    "has_backups",
    "mark_entry",
    "mark_fact",
    "merge_into",
    "move_entry",
    "propose",
    "remove_session",
    "resolve_history_item",
    "supersede_entries",
    "undo_change",
    "update_entry",
    "update_fact",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".config": "ConsolidationConfig InjectionConfig ProfileConfig",
        ".consolidator": "Consolidator NOTHING_NEW",
        ".forget": "forget_entries has_backups",
        ".marks": (
            "EntryUpdate confirm_entries mark_entry mark_fact merge_into supersede_entries update_entry update_fact"
        ),
        ".profile.storage": "FileProfileStore InMemoryProfileStore",
        ".profile.updater": "ProfileUpdater",
        ".profile.updates": "NewFact ProfileUpdate UpdateLabels UpdateResult",
        ".profile.user_profile": "UserProfile",
        ".scope_change": "move_entry",
        ".session_removal": "remove_session",
        ".proposal": "ConsolidationInput find_faults propose",
        ".retention": "archive_faded",
        ".run_state": "CURSOR_PATH",
        ".types": "CandidateEntry ConsolidationResult",
        ".undo": "resolve_history_item undo_change",
    },
)
