"""Roots whose files a test writes by hand, as a person does in a root that was made on this machine."""

import json
import secrets
from pathlib import Path

from ricordo.runtime import Settings
from ricordo.runtime.roots import identity_from_key
from ricordo.runtime.trust import TRUST_LIST, trust_record_path

__all__ = ["begun"]


def begun(root: Path, data: Path | None = None) -> Path:
    """Return the folder of a root that was begun here: it is there and has a key.

    It is on the user's list, and on the one in `data`. A key that lies in it already stays.
    """
    root.mkdir(parents=True, exist_ok=True)
    root.chmod(0o700)
    file = root / "guard.key"
    if not file.exists():
        file.write_bytes(secrets.token_bytes(64))
        file.chmod(0o600)
    key = file.read_bytes()
    for each in (Settings.from_environment().data, data):
        if each is not None:
            note = each / TRUST_LIST / trust_record_path(identity_from_key(key))
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(json.dumps({"version": 1, "path": str(root)}), encoding="utf-8")
    return root
