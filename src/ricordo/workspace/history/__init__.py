"""The history of a workspace: change sets, what they changed, what was forgotten, and how memories were used."""

__all__: list[str] = []
