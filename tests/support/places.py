"""Where what is a user's alone lies in a root of a project."""

from pathlib import Path

from ricordo.scope import owner_part

__all__ = ["place_of"]


def place_of(root: Path, user: str = "me") -> Path:
    """Return the folder of `user` in a root that several may share; by default of the user whom commands are for."""
    return root / "users" / owner_part(user)
