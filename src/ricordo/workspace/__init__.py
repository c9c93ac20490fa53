"""The workspace: the plain files that store memory, their names, their documents, and their history."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.workspace.agent_state import AgentState, PlanState, Todo, WorkState
    from ricordo.workspace.agent_state_store import FileStateStore, PermissionGrants
    from ricordo.workspace.entry import Author, Source
    from ricordo.workspace.entry_codec import parse_entries, parse_entry, render_entry, render_prompt_lines
    from ricordo.workspace.evicted_files import remove_unreferenced
    from ricordo.workspace.history.audit import AuditedEntry, AuditRecord
    from ricordo.workspace.history.change_sets import ChangeSets, Edit
    from ricordo.workspace.history.checks import find_damage
    from ricordo.workspace.history.erase import EraseResult
    from ricordo.workspace.history.log import list_history
    from ricordo.workspace.history.tombstones import Tombstone, Tombstones, content_digest
    from ricordo.workspace.history.versions import ChangeDiff, diff_change, find_entry_changes, read_entries_as_of
    from ricordo.workspace.layout import (
        DEFAULT_AGENT,
        INDEX_FILE,
        MEMORY_PATH,
        TOMBSTONES,
        compactions_path,
        cursor_path,
        ledger_path,
        profile_path,
        state_path,
        tasks_path,
        transcript_path,
    )
    from ricordo.workspace.ledger import append_entries, read_all_entries
    from ricordo.workspace.profile import (
        HISTORY_SUMMARIES,
        USER_SUMMARIES,
        Fact,
        FactSource,
        Profile,
        ProfileSummary,
        format_profile_time,
        render_profile,
    )
    from ricordo.workspace.redaction import redact_messages
    from ricordo.workspace.session_catalog import SessionCatalog
    from ricordo.workspace.session_search import SessionInfo, find_session, list_sessions
    from ricordo.workspace.team import heal_document, note_edit, parse_members, render_members
    from ricordo.workspace.transcript import Transcript, read_transcript

__all__ = [
    "DEFAULT_AGENT",
    "HISTORY_SUMMARIES",
    "INDEX_FILE",
    "MEMORY_PATH",
    "TOMBSTONES",
    "USER_SUMMARIES",
    "AgentState",
    "AuditRecord",
    "AuditedEntry",
    "Author",
    "ChangeDiff",
    "ChangeSets",
    "Edit",
    "EraseResult",
    "Fact",
    "FactSource",
    "FileStateStore",
    "PermissionGrants",
    "PlanState",
    "Profile",
    "ProfileSummary",
    "SessionCatalog",
    "SessionInfo",
    "Source",
    "Todo",
    "Tombstone",
    "Tombstones",
    "Transcript",
    "WorkState",
    "append_entries",
    "compactions_path",
    "content_digest",
    "cursor_path",
    "diff_change",
    "find_damage",
    "find_entry_changes",
    "find_session",
    "format_profile_time",
    "heal_document",
    "ledger_path",
    "list_history",
    "list_sessions",
    "note_edit",
    "parse_entries",
    "parse_entry",
    "parse_members",
    "profile_path",
    "read_all_entries",
    "read_entries_as_of",
    "read_transcript",
    "redact_messages",
    "remove_unreferenced",
    "render_entry",
    "render_members",
    "render_profile",
    "render_prompt_lines",
    "state_path",
    "tasks_path",
    "transcript_path",
]

__getattr__ = lazy_exports(
    __name__,
    {
        ".agent_state": "AgentState PlanState Todo WorkState",
        ".agent_state_store": "FileStateStore PermissionGrants",
        ".entry": "Author Source",
        ".entry_codec": "parse_entries parse_entry render_entry render_prompt_lines",
        ".evicted_files": "remove_unreferenced",
        ".history.audit": "AuditRecord AuditedEntry",
        ".history.change_sets": "ChangeSets Edit",
        ".history.checks": "find_damage",
        ".history.erase": "EraseResult",
        ".history.log": "list_history",
        ".history.tombstones": "Tombstone Tombstones content_digest",
        ".history.versions": "ChangeDiff diff_change find_entry_changes read_entries_as_of",
        ".layout": (
            "DEFAULT_AGENT INDEX_FILE MEMORY_PATH TOMBSTONES compactions_path cursor_path ledger_path "
            "profile_path state_path tasks_path transcript_path"
        ),
        ".ledger": "append_entries read_all_entries",
        ".profile": (
            "Fact FactSource HISTORY_SUMMARIES Profile ProfileSummary USER_SUMMARIES format_profile_time render_profile"
        ),
        ".redaction": "redact_messages",
        ".session_catalog": "SessionCatalog",
        ".session_search": "SessionInfo find_session list_sessions",
        ".team": "heal_document note_edit parse_members render_members",
        ".transcript": "Transcript read_transcript",
    },
)
