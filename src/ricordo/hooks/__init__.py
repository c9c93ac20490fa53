"""Hooks: what a coding agent, the host, tells Ricordo while it works, and what Ricordo answers.

The process of a hook starts often and must end soon. So the files of this room that it needs import only the standard
library, and little of it; their values are named tuples, since `dataclasses` costs as much as the rest.
"""

__all__: list[str] = []
