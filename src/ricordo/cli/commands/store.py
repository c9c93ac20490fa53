"""`store list` and `store migrate`: which stores there are, and moving between them."""

from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ricordo.cli.options import JsonOption, ProjectOption, RootOption, UserOption
from ricordo.cli.render import bold, dim, escape, pluralize, print_error, print_json, print_line, progress_bar
from ricordo.cli.target import Target, find_target, load_scope, run_async
from ricordo.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ricordo.messages.types import JsonValue
    from ricordo.scope import Scope
    from ricordo.stores import Store
    from ricordo.stores.addresses import Address
    from ricordo.stores.migration import Migration

__all__ = ["list_stores", "load_store_scope", "migrate", "open_store_at", "resolve_address", "store_exists"]


def resolve_address(text: str, target: Target) -> "Address":
    """Return the address, with the root for `layered` without a place. Raises `InvalidSetting`."""
    from ricordo.stores.addresses import parse_address

    address = parse_address(text)
    if address.scheme == "layered" and not address.location:
        return replace(address, location=str(target.root))
    return address


def store_exists(address: "Address") -> bool:
    """Return whether every folder that the address names exists, so that opening the store creates nothing."""
    from ricordo.runtime.stores import expand_home
    from ricordo.stores.addresses import SCHEMES, parse_address, split_addresses

    if address.scheme == "fanout":
        return all(store_exists(parse_address(each)) for each in split_addresses(address.location))
    if address.scheme not in SCHEMES or not address.location:
        return True
    return _path_exists(expand_home(address.location))


def _path_exists(path: Path) -> bool:
    """Return whether the path exists; False if it can't be read, which opening it reports."""
    try:
        return path.exists()
    except OSError:
        return False


async def load_store_scope(addresses: "Sequence[Address]", target: Target) -> "Scope":
    """Return whose stores these are: by the marker of the first folder that has one, else as for a command's root.

    The user is that of this machine, who sees in a root what is for all of their projects too.
    """
    from ricordo.runtime.roots import read_marker
    from ricordo.runtime.workspace import root_files
    from ricordo.scope import Scope

    for folder in _existing_folders(addresses):
        owner = await read_marker(root_files(folder))
        if owner:
            return Scope(**{"user": target.user} | owner.parts())
    return await load_scope(target)


def _existing_folders(addresses: "Sequence[Address]") -> list[Path]:
    from ricordo.runtime.stores import expand_home

    places = [expand_home(address.location).absolute() for address in addresses if address.location]
    return [place for place in places if _path_exists(place) and place.is_dir()]


@asynccontextmanager
async def open_store_at(address: "Address", scope: "Scope", target: Target) -> "AsyncIterator[Store]":
    """Open the store; of a root nothing is consolidated meanwhile. Raises: InvalidInput if it can't be opened."""
    from ricordo.runtime.stores import open_store

    if address.scheme == "none":
        raise InvalidInput("The store none keeps nothing.")
    settings = replace(target.settings, consolidation=None)
    async with open_store(str(address), scope=scope, settings=settings) as store:
        yield store


_From = Annotated[
    str, typer.Argument(metavar="FROM", help="The store to read, such as layered or sessions:./.harness.")
]
_To = Annotated[str, typer.Argument(metavar="TO", help="The store to write, such as jsonl:./notes.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be moved, and write nothing.")]
_MAX_FAILURES_SHOWN = 20


def list_stores(*, as_json: JsonOption = False) -> None:
    """Show the stores that can be named, what each keeps, and what it needs to be installed.

    A store is named by scheme:place, such as jsonl:./notes.
    """
    from ricordo.runtime.stores import list_schemes

    schemes = list_schemes()
    if as_json:
        rows: list[JsonValue] = [
            {"scheme": each.name, "keeps": each.description, "needs": each.requires or None, "origin": each.origin}
            for each in schemes
        ]
        print_json({"stores": rows})
        return
    width = max(len(each.name) for each in schemes)
    for each in schemes:
        needs = f" (needs {each.requires})" if each.requires else ""
        print_line(
            f"{bold(each.name.ljust(width))}  {escape(each.description or f'offered by {each.origin}')}{dim(needs)}"
        )


def migrate(
    *,
    source: _From,
    destination: _To,
    dry_run: _DryRun = False,
    root: RootOption = None,
    user: UserOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy every memory of a store to another, and check what arrived.

    Kinds, tags, times, ids, sources and states stay as they are, and the store that is read is left as it is. A second
    time copies only what is not there yet. The exit code is 1 if a memory could not be copied, and it is named.
    """
    target = find_target(root, user, project)
    addresses = resolve_address(source, target), resolve_address(destination, target)
    migration = run_async(lambda: _run_migration(addresses, target, dry_run=dry_run))
    if as_json:
        print_json(_migration_document(addresses, migration, dry_run=dry_run))
    else:
        for line in _format_migration(addresses, migration, dry_run=dry_run):
            print_line(line)
        for each in migration.failed[:_MAX_FAILURES_SHOWN]:
            print_error(f"{each.id} was not copied: {each.reason}")
        if len(migration.failed) > _MAX_FAILURES_SHOWN:
            print_error(f"and {len(migration.failed) - _MAX_FAILURES_SHOWN:,} more: --json names them all")
    if migration.failed:
        raise typer.Exit(1)


async def _run_migration(addresses: "tuple[Address, Address]", target: Target, *, dry_run: bool) -> "Migration":
    from ricordo.stores.contract import LayeredMemory
    from ricordo.stores.migration import list_entries, migrate, plan_migration, skip_forgotten, verify_migration
    from ricordo.workspace.history.log import PERSON

    source, destination = addresses
    if str(source) == str(destination):
        raise InvalidInput(f"{source} is both where to read and where to write.")
    if destination.scheme == "fanout":
        raise InvalidInput(_fanout_message(source, destination))
    if not store_exists(source):
        raise NotFound(f"There is no store {source}: its folder does not exist.")
    scope = await load_store_scope([source, destination], target)
    async with open_store_at(source, scope, target) as store:
        entries = await list_entries(store, str(source))
    if dry_run and not store_exists(destination):
        return plan_migration(entries, [])
    async with open_store_at(destination, scope, target) as store:
        plan = await skip_forgotten(plan_migration(entries, await list_entries(store, str(destination))), store)
        if dry_run:
            return plan
        with progress_bar(len(plan.pending), "copying") as report_progress:
            migration = await migrate(plan, store, report_progress)
        layers = store.offers(LayeredMemory)
        if layers and migration.copied:
            changes = (await layers.places())[0].changes
            await changes.apply([], act="import", who=PERSON, entries=[entry.id for entry in migration.copied])
    async with open_store_at(destination, scope, target) as store:
        return verify_migration(migration, entries, await list_entries(store, str(destination)))


def _fanout_message(source: "Address", destination: "Address") -> str:
    """Return the commands that replace a migration into a fanout, which lists only the entries of its first store."""
    from ricordo.stores.addresses import split_addresses

    commands = " and ".join(
        f"`ricordo store migrate {source} {each}`" for each in split_addresses(destination.location)
    )
    return f"A fanout shows only what its first store that answers has: write to each of its stores, {commands}."


def _format_migration(addresses: "tuple[Address, Address]", result: "Migration", *, dry_run: bool) -> "list[str]":
    source, destination = addresses
    if dry_run:
        waiting = pluralize(len(result.pending), "memory", "memories")
        return [
            f"{waiting} of {result.total:,} would be copied from {escape(str(source))} to {escape(str(destination))}.",
            *(
                [f"{result.already_there:,} {'is' if result.already_there == 1 else 'are'} there already."]
                if result.already_there
                else []
            ),
            *_format_forgotten(result),
        ]
    moved = pluralize(len(result.copied), "memory", "memories")
    lines = [
        f"{moved} of {result.total:,} copied from {escape(str(source))} to {escape(str(destination))}, and read back."
    ]
    if result.already_there:
        lines.append(f"{result.already_there:,} {'was' if result.already_there == 1 else 'were'} there already.")
    lines += _format_forgotten(result)
    if result.redacted:
        lines.append(f"In {pluralize(result.redacted, 'memory', 'memories')} a secret was replaced by its mark.")
    return lines


def _format_forgotten(migration: "Migration") -> "list[str]":
    """Return the line about memories that were forgotten at the destination; empty if there are none."""
    were = "was" if migration.forgotten == 1 else "were"
    return [f"{migration.forgotten:,} {were} forgotten there, and not taken in again."] if migration.forgotten else []


def _migration_document(
    addresses: "tuple[Address, Address]", migration: "Migration", *, dry_run: bool
) -> "dict[str, JsonValue]":
    return {
        "from": str(addresses[0]),
        "to": str(addresses[1]),
        "dry_run": dry_run,
        "total": migration.total,
        "waiting": len(migration.pending) if dry_run else 0,
        "copied": len(migration.copied),
        "there": migration.already_there,
        "forgotten": migration.forgotten,
        "redacted": migration.redacted,
        "failed": [{"id": each.id, "reason": each.reason} for each in migration.failed],
    }
