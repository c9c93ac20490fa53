"""A text in the person's own editor, and what they make of it.

Invariant: what a person has written is in a file of theirs alone until the caller takes it away.
"""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from ricordo.errors import InvalidInput

__all__ = ["edit_text"]

_DEFAULT_EDITOR = "vi"


def edit_text(text: str) -> tuple[str, Path]:
    """Open `text` in the editor that VISUAL or EDITOR names; return what was saved, and the file that holds it.

    Raises: InvalidInput when the editor can't be started or says that it failed; the file stays.
    """
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or _DEFAULT_EDITOR)
    descriptor, name = tempfile.mkstemp(prefix="ricordo-profile-", suffix=".txt")
    with os.fdopen(descriptor, "wb") as file:
        file.write(text.encode("utf-8", "replace"))
    try:
        subprocess.run([*command, name], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InvalidInput(
            f"The editor {command[0]!r} did not end well, so nothing was changed: name another one in EDITOR. "
            f"The text is kept in {name}."
        ) from error
    return Path(name).read_bytes().decode("utf-8", "replace"), Path(name)
