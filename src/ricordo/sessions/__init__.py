"""Sessions: what was said when, from the transcripts."""

from ricordo.sessions.catalogue import Glance, SessionInfo, find_session, list_sessions
from ricordo.sessions.past import Found, PastSessions, pointed
from ricordo.sessions.search import Finding, Narrowed, Spoken

__all__ = [
    "Finding",
    "Found",
    "Glance",
    "Narrowed",
    "PastSessions",
    "SessionInfo",
    "Spoken",
    "find_session",
    "list_sessions",
    "pointed",
]
