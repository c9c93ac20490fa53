"""Move the fragments of `changelog.d/` into a new section of `CHANGELOG.md`: `collect_changelog.py VERSION DATE`."""

import sys
from pathlib import Path

__all__ = ["KINDS", "collect", "main"]

KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")


def collect(fragments: dict[str, str], *, version: str, date: str) -> str:
    """Return the section for `version`: the fragments (by file name) as bullets under their kinds.

    Raises: ValueError if a name does not end in a known kind.
    """
    strange = [name for name in fragments if name.split(".")[-2:-1] not in [[kind] for kind in KINDS]]
    if strange:
        raise ValueError(f"not named <slug>.<kind>.md with a kind of {', '.join(KINDS)}: {', '.join(sorted(strange))}")
    parts = [f"## [{version}] - {date}"]
    for kind in KINDS:
        bullets = [_bullet(text) for name, text in sorted(fragments.items()) if name.split(".")[-2] == kind]
        parts += [f"### {kind.capitalize()}", "\n".join(bullets)] if bullets else []
    return "\n\n".join(parts) + "\n"


def main(folder: Path, version: str, date: str) -> None:
    """Write the section above the older ones, and delete the fragments it was made from."""
    paths = [path for path in sorted((folder / "changelog.d").glob("*.md")) if path.name != "README.md"]
    section = collect({path.name: path.read_text(encoding="utf-8") for path in paths}, version=version, date=date)
    log = folder / "CHANGELOG.md"
    head, mark, older = log.read_text(encoding="utf-8").partition("\n## ")
    log.write_text(f"{head.rstrip()}\n\n{section}{mark}{older}", encoding="utf-8")
    for path in paths:
        path.unlink()


def _bullet(text: str) -> str:
    first, *rest = text.strip().removeprefix("- ").splitlines()
    return "\n".join([f"- {first}", *(f"  {line.strip()}" for line in rest)])


if __name__ == "__main__":
    main(Path(__file__).resolve().parent.parent, *sys.argv[1:3])
