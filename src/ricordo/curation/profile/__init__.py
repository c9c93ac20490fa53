"""The profile: who a user is, in summaries and facts, updated from conversations and by the user."""

__all__: list[str] = []
