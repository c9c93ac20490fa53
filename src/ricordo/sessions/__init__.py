"""Sessions: what was said when, from the transcripts."""

from ricordo.sessions.catalogue import SessionOverview, SessionInfo, find_session, list_sessions
from ricordo.sessions.past import SessionSearchResult, PastSessions, parse_pointer
from ricordo.sessions.search import SessionMatch, SessionFilter, MessageExcerpt

__all__ = [
    "SessionMatch",
    "SessionSearchResult",
    "SessionOverview",
    "SessionFilter",
    "PastSessions",
    "SessionInfo",
    "MessageExcerpt",
    "find_session",
    "list_sessions",
    "parse_pointer",
]
