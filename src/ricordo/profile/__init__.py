"""Profile: who a user is, in three levels, kept current by what is said and by the user's own hand."""

__all__: list[str] = []
