"""Programs whose history is on this machine, and the memory that each of their sessions belongs to."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ricordo.importers.reader import FoundSource
from ricordo.importers.registry import list_formats
from ricordo.lazy import dataclass
from ricordo.runtime import Settings
from ricordo.runtime.roots import ROOT_FOLDER, find_root, new_root_path
from ricordo.workspace.layout import PROJECT_FILE

if TYPE_CHECKING:
    from ricordo.importers.contract import HistoryFinder

__all__ = ["DividedHistory", "divide_by_root", "find_histories", "find_root_of", "list_hosts"]


@dataclass(frozen=True, kw_only=True)
class DividedHistory:
    """Sources by the memory that they belong to: `own` to the given one, `others` by root.

    `homeless` are those of a folder that is gone, is not known, or gets no memory without being asked.
    """

    own: list[FoundSource] = field(default_factory=list)
    others: Mapping[Path, list[FoundSource]] = field(default_factory=dict)
    homeless: list[FoundSource] = field(default_factory=list)


def list_hosts() -> tuple[str, ...]:
    """Return the names of the programs whose history can be found."""
    return tuple(sorted(each.name for each in list_formats() if hasattr(each.load(), "find")))


def find_histories(name: str, home: Path, environment: Mapping[str, str]) -> list[FoundSource]:
    """Return what the program `name` wrote on this machine, oldest sessions first; empty without any.

    `home` is the user's home folder. A file that can't be read is left out. Raises: KeyError for an unknown name.
    """
    forms = {each.name: each for each in list_formats()}
    finder = cast("HistoryFinder", forms[name].load())
    return [
        FoundSource(source=each.source, form=forms[each.form], folder=each.folder, everywhere=each.everywhere)
        for each in finder.find(home, environment)
    ]


def divide_by_root(sources: Iterable[FoundSource], root: Path, here: Path, home: Path) -> DividedHistory:
    """Divide sources by the root whose memory they belong to.

    What holds for all projects, and sessions of the folder `here`, belong to `root`, wherever that is.
    """
    own, others, homeless = list[FoundSource](), defaultdict[Path, list[FoundSource]](list), list[FoundSource]()
    own_roots = {root.resolve(), find_root_of(here, home) or here.resolve() / ROOT_FOLDER}
    for found in sources:
        place = None if found.folder is None else find_root_of(found.folder, home)
        if found.everywhere or (place is not None and _is_of(place, own_roots)):
            own.append(found)
        elif place is None:
            homeless.append(found)
        else:
            others[place].append(found)
    return DividedHistory(own=own, others=dict(others), homeless=homeless)


def _is_of(place: Path, roots: Collection[Path]) -> bool:
    """Tell whether a root is one of `roots`, or would be a new one below the folder of one without a repository there.

    Who works in a folder below the project begins no project of its own.
    """
    is_new_project = (place / PROJECT_FILE).is_file() or (place.parent / ".git").exists()
    return place in roots or (not is_new_project and any(place.is_relative_to(root.parent) for root in roots))


def find_root_of(folder: Path, home: Path) -> Path | None:
    """Return the root of sessions in `folder`: the nearest one, else a new one at the top of its git work tree.

    None for a folder that is gone and has no root above it, and for one whose root would be in the home folder or
    above.
    """
    folder, home = folder.resolve(), home.resolve()
    worktrees = Settings.from_environment().worktrees
    nearest = find_root(folder, worktrees)
    if nearest is not None or not folder.is_dir():
        return nearest
    new = new_root_path(folder, worktrees)
    return None if new.parent in {home, *home.parents} else new
