"""Sessions: what was said when, from the transcripts."""

from ricordo.sessions.catalogue import SessionInfo, find_session, list_sessions

__all__ = ["SessionInfo", "find_session", "list_sessions"]
