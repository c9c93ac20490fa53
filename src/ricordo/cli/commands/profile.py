"""`profile`: what is known of the user, to show, change, import and export.

Invariant: what a person has written in the editor is in a file of theirs alone until the command takes it away.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ricordo.cli.options import JsonOption, LimitOption, ProjectOption, RootOption, UserOption, YesOption
from ricordo.cli.render import bold, dim, escape, pluralize, print_json, print_line, print_note
from ricordo.cli.target import find_target, read_memory, require_target, with_memory
from ricordo.errors import AlreadyExists, FactNotFound, FileMissing, InvalidInput, StorageFailed, VersionConflict

if TYPE_CHECKING:
    from ricordo.cli.target import Target
    from ricordo.curation.profile.importing import ImportPreference, ProfileImport, ProfileMigration
    from ricordo.curation.profile.storage import SavedProfile
    from ricordo.curation.profile.user_profile import UserProfile
    from ricordo.messages.types import JsonValue
    from ricordo.runtime.memory import Memory
    from ricordo.workspace.profile import Fact, Profile

__all__ = ["add", "clear", "edit", "edit_text", "export", "import_", "migrate", "remove", "show"]


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


_FactId = Annotated[
    str, typer.Argument(metavar="ID", help="The id of a fact as `ricordo profile show` shows it, or its beginning.")
]
_Prefer = Annotated[
    str | None, typer.Option("--prefer", metavar="SIDE", help="Who is right where they differ: document, profile.")
]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only tell what would change.")]
_EMPTY_MESSAGE = "Nothing is known of the user yet. `ricordo profile add` adds a fact."


def show(
    *,
    query: Annotated[str, typer.Argument(metavar="[WORDS]", help="Only facts that have to do with these words.")] = "",
    category: Annotated[
        str | None, typer.Option("--category", "-c", metavar="NAME", help="Only facts of this category.")
    ] = None,
    limit: LimitOption = 500,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what is known of the user: the summaries, and the facts with their ids."""
    target = require_target(root, user, project)

    async def look(memory: "Memory") -> "tuple[Profile, tuple[Fact, ...], int, list[str]]":
        profile = memory.profile()
        page = await profile.facts(query=query, category=category, limit=limit)
        return await profile.show(), page.facts, page.total, profile.unreadable_places

    profile, facts, total, unreadable = read_memory(target, look)
    if as_json:
        print_json(_profile_document(profile, facts, total, unreadable))
        return
    _print_profile(profile, facts, with_summaries=not query and category is None)
    if len(facts) < total:
        print_line(dim(f"{pluralize(total - len(facts), 'more fact')}: --limit shows them."))
    if unreadable:
        print_note(f"{pluralize(len(unreadable), 'record')} of the profile can't be read: {', '.join(unreadable)}.")


def add(
    *,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What is known.")],
    category: Annotated[
        str, typer.Option("--category", "-c", metavar="NAME", help="preference, knowledge, goal, or any other.")
    ] = "context",
    confidence: Annotated[float, typer.Option("--confidence", metavar="SHARE", help="How sure it is, 0 to 1.")] = 1.0,
    avoid: Annotated[str | None, typer.Option("--avoid", metavar="TEXT", help="What was wrong before.")] = None,
    days: Annotated[int | None, typer.Option("--days", metavar="N", help="How long it holds.")] = None,
    pin: Annotated[bool, typer.Option("--pin", help="Keep it in view whatever else is known.")] = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a fact to the profile; without a root, one is created."""
    target = find_target(root, user, project)

    async def save(memory: "Memory") -> "Fact":
        return await memory.profile().add_fact(
            text, category=category, confidence=confidence, source_error=avoid, valid_days=days, pinned=pin
        )

    _print_fact("Added", with_memory(target, save), as_json=as_json)


def remove(
    *,
    fact_id: _FactId,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the history.")] = "",
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a fact; it is not learned again, and `ricordo undo` brings it back."""
    target = require_target(root, user, project)

    async def take_out(memory: "Memory") -> "Fact":
        profile = memory.profile()
        fact = await profile.fact(await _resolve_fact_id(profile, fact_id))
        await memory.forget(fact.id, reason=reason)
        return fact

    _print_fact("Removed", with_memory(target, take_out), as_json=as_json)


def edit(
    *,
    given: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Take the changes from a text that was edited before."),
    ] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the profile as text in an editor, and take the changes back as changes of facts.

    The editor is the one that VISUAL or EDITOR names. A text that can't be read changes nothing, and is kept.
    """
    from ricordo.curation.profile.text_form import is_current_text, render_editable

    target = find_target(root, user, project)
    base = read_memory(target, lambda memory: memory.profile().show())
    if given is None:
        text, draft_path = edit_text(render_editable(base))
    else:
        text, draft_path = _read_file(given).decode("utf-8", "replace"), given
        if not is_current_text(base, text):
            raise VersionConflict(f"The profile was saved since {given} was made of it: `ricordo profile edit` again.")
    try:
        saved = _save_edit(target, base, text)
    except (InvalidInput, VersionConflict) as error:
        error_message = (
            f"{error} Your text is kept: `ricordo profile edit --from {draft_path}` takes it, once it is mended."
        )
        raise type(error)(error_message) from error
    if given is None:
        draft_path.unlink(missing_ok=True)
    _print_edit(saved, base, as_json=as_json)


def clear(
    *,
    yes: YesOption = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget the whole profile; nothing of it is learned again, and `ricordo undo` brings it back.

    A profile that can't be read is kept beside the new one. It asks first; without a terminal it needs --yes.
    """
    target = require_target(root, user, project)
    if not yes:
        if not sys.stdin.isatty() or as_json:
            raise InvalidInput("Forgetting the whole profile needs a confirmation: give --yes.")
        typer.confirm("Forget all that is known of the user?", abort=True)
    saved = with_memory(target, lambda memory: memory.profile().clear())
    if as_json:
        print_json({"revision": saved.profile.revision, "change": saved.change})
    else:
        print_line("The profile is empty.")
        print_line(dim(f"  `ricordo undo {saved.change}` brings it back"))


def export(
    *,
    to: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="A new file; else standard output.")] = None,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the whole profile as JSON, in the shape that DeerFlow's memory has; it loses nothing."""
    target = require_target(root, user, project)
    document = read_memory(target, lambda memory: memory.profile().export_document())
    if to is None:
        typer.echo(document, nl=False)
        return
    try:
        # it tells of a person: nobody else may read it
        with os.fdopen(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(document)
    except FileExistsError as error:
        raise AlreadyExists(f"{to} exists already and was left unchanged.") from error
    except OSError as error:
        raise StorageFailed(f"{to} can't be written: {error.strerror}.") from error
    if as_json:
        print_json({"file": str(to)})
    else:
        print_line(f"Wrote {escape(str(to))}")


def import_(
    *,
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A profile in JSON; - reads it from standard input.")],
    replace: Annotated[bool, typer.Option("--replace", help="Make the profile what the file says.")] = False,
    prefer: _Prefer = None,
    dry_run: _DryRun = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in a profile: one of `profile export`, or of DeerFlow's memory. What is missing is added."""
    target, side = find_target(root, user, project), _parse_side(prefer)
    data = sys.stdin.buffer.read() if str(source) == "-" else _read_file(source)

    async def take_in(memory: "Memory") -> "ProfileImport":
        return await memory.profile().import_document(
            data, mode="replace" if replace else "merge", prefer=side, dry_run=dry_run
        )

    _print_import(with_memory(target, take_in), as_json=as_json)


def migrate(
    *,
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[SOURCE]", help="A memory.json of DeerFlow, or the folder of one of its users."),
    ] = None,
    agent: Annotated[str, typer.Option("--agent", metavar="NAME", help="Whose facts, in a folder of several.")] = "",
    prefer: _Prefer = None,
    dry_run: _DryRun = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take in the memory of another system, or bring an older profile to this version.

    A copy of it is kept first, and it is not written to itself. A second time nothing changes.
    """
    from ricordo.curation.profile.importing import read_foreign_profile
    from ricordo.runtime.workspace import root_files

    target, side = find_target(root, user, project), _parse_side(prefer)
    folder, name = _split_source(source) if source else (None, "")

    async def take_in(memory: "Memory") -> "ProfileMigration":
        document = await read_foreign_profile(root_files(folder), name, agent=agent) if folder else None
        return await memory.profile().migrate(document, prefer=side, dry_run=dry_run)

    migration = with_memory(target, take_in)
    _print_import(
        migration.imported, as_json=as_json, backup=target.display_path(migration.backup) if migration.backup else ""
    )


def _split_source(source: Path) -> tuple[Path, str]:
    """Return the folder of a source, and its name in there; none where it is a folder."""
    return (source, "") if source.is_dir() else (source.absolute().parent, source.name)


def _parse_side(value: str | None) -> "ImportPreference | None":
    if value not in {None, "document", "profile"}:
        raise typer.BadParameter("--prefer is document or profile.")
    return cast("ImportPreference | None", value)


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileMissing(f"{path} can't be read: {error.strerror}.") from error


def _save_edit(target: "Target", base: "Profile", text: str) -> "SavedProfile":
    """Save what a text changes of the profile that it was made of."""
    from ricordo.clock import SystemClock
    from ricordo.curation.profile.text_form import apply_edited_text
    from ricordo.workspace.profile import format_profile_time

    profile = apply_edited_text(base, text, now=format_profile_time(SystemClock().now()))
    return with_memory(target, lambda memory: memory.profile().replace_all(profile, base=base, why="edited by hand"))


async def _resolve_fact_id(profile: "UserProfile", requested: str) -> str:
    ids = [fact.id for fact in (await profile.show()).facts]
    matches = [each for each in ids if each == requested] or [
        each for each in ids if each.startswith(requested) and requested
    ]
    if len(matches) > 1:
        raise FactNotFound(f"{len(matches)} facts have ids that begin with {requested}: write more of it.")
    return matches[0] if matches else requested


def _print_profile(profile: "Profile", facts: "tuple[Fact, ...]", *, with_summaries: bool) -> None:
    from ricordo.curation.profile.rendering import FACTS_HEADING, SUMMARY_HEADINGS, render_fact

    if profile.is_empty:
        print_line(_EMPTY_MESSAGE)
        return
    for heading, names in SUMMARY_HEADINGS if with_summaries else ():
        texts = [(label, profile.summaries[name].summary.strip()) for name, label in names]
        if any(text for _, text in texts):
            print_line(bold(heading))
            for label, text in texts:
                if text:
                    print_line(f"- {label}: {escape(text)}")
            print_line()
    if facts:
        print_line(bold(FACTS_HEADING))
    for fact in facts:
        print_line(f"{escape(render_fact(fact))}  {dim(escape(fact.id) + ('  pinned' if fact.pinned else ''))}")


def _profile_document(
    profile: "Profile", facts: "tuple[Fact, ...]", total: int, unreadable: list[str]
) -> "dict[str, JsonValue]":
    from dataclasses import replace

    from ricordo.workspace.profile import profile_to_document

    unread_documents: list[JsonValue] = [*unreadable]
    return {"profile": profile_to_document(replace(profile, facts=facts)), "total": total, "unread": unread_documents}


def _print_fact(action: str, fact: "Fact", *, as_json: bool) -> None:
    from ricordo.curation.profile.rendering import render_fact
    from ricordo.workspace.profile import Profile, profile_to_document

    if as_json:
        facts = profile_to_document(Profile(facts=(fact,)))["facts"]
        print_json({"fact": facts[0] if isinstance(facts, list) else None})
        return
    print_line(f"{action} {escape(fact.id)}")
    print_line(dim(f"  {escape(render_fact(fact)[2:])}"))


def _print_edit(saved: "SavedProfile", base: "Profile", *, as_json: bool) -> None:
    now = saved.profile
    before, after = ({fact.id: fact for fact in side.facts} for side in (base, now))
    counts = {
        "added": len(after.keys() - before.keys()),
        "changed": sum(after[name] != before[name] for name in after.keys() & before.keys()),
        "removed": len(before.keys() - after.keys()),
        "summaries": sum(each != now.summaries.get(name) for name, each in base.summaries.items()),
    }
    if as_json:
        print_json({**counts, "change": saved.change})
    elif not any(counts.values()):
        print_line("Nothing was changed.")
    else:
        print_line(f"Saved: {', '.join(f'{count} {name}' for name, count in counts.items() if count)}.")


def _print_import(result: "ProfileImport", *, as_json: bool, backup: str = "") -> None:
    changes = {
        "added": result.added, "changed": result.changed, "removed": result.removed, "summaries": result.summaries,
        "conflicts": result.conflicts, "mended": result.repaired,
    }  # fmt: skip
    if as_json:
        document: dict[str, JsonValue] = {name: [*names] for name, names in changes.items()}
        print_json({**document, "known": result.known, "saved": result.is_saved, "backup": backup or None})
        return
    for name, names in changes.items():
        if names:
            print_line(f"{name}: {escape(', '.join(names))}")
    if backup:
        print_line(dim(f"  a copy of it is kept in {escape(backup)}"))
    if not result.changes_something:
        print_line("Nothing changes: all of it is known.")
    elif not result.is_saved:
        print_line(dim("Nothing was changed; without --dry-run it is."))
