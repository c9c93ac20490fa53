"""The memory roots that a scope sees, narrowest first, each opened when it is needed.

With a user and a project or team these are the user's folder in that root, the shared part of the root, and the user's
own root for all projects. The narrowest is always open.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import anyio

from ricordo.concurrency import run_in_thread
from ricordo.errors import ScopeMismatch
from ricordo.lazy import dataclass
from ricordo.runtime.roots import owning_scope, scope_folder, user_root_path
from ricordo.scope import Scope
from ricordo.search.memory_root import SHARED_LABEL, MemoryRoot
from ricordo.workspace.layout import PROJECT_FILE

__all__ = ["USER_LABEL", "RootLayer", "VisibleRoots", "list_root_layers"]


USER_LABEL = "user"
"""The label of a user's own root, if it is not the narrowest."""


@dataclass(frozen=True, kw_only=True)
class RootLayer:
    """A root that a scope sees: its label, its folder, which may not exist yet, and its owner."""

    label: str
    folder: Path
    scope: Scope


def list_root_layers(root: Path, scope: Scope, data: Path) -> tuple[RootLayer, ...]:
    """Return the layers of `scope` in `root`, narrowest first; `data` holds the users' own roots."""
    owner, folder = owning_scope(scope), scope_folder(root, scope)
    label = "project" if scope.project is not None else "own"
    if folder == root or scope.user is None:
        return (RootLayer(label=label, folder=root, scope=owner),)
    return (
        RootLayer(label=label, folder=folder, scope=Scope(**owner.parts() | {"user": scope.user})),
        RootLayer(label=SHARED_LABEL, folder=root, scope=owner),
        RootLayer(
            label=USER_LABEL,
            folder=user_root_path(data, scope.user, scope.tenant),
            scope=Scope(user=scope.user, tenant=scope.tenant),
        ),
    )


class VisibleRoots:
    """The roots of one scope, opened with `open_place`, whose owner closes them."""

    def __init__(
        self,
        layers: Sequence[RootLayer],
        narrowest: MemoryRoot,
        open_place: Callable[[RootLayer], Awaitable[MemoryRoot]],
    ) -> None:
        """Start with only `narrowest` open, the root of the first layer."""
        self._layers = {layer.label: layer for layer in layers}
        self._open_root = open_place
        self._roots = {layers[0].label: narrowest}
        self._open_lock = anyio.Lock()
        self.narrowest = narrowest

    @property
    def open_roots(self) -> list[MemoryRoot]:
        """The open roots, narrowest first."""
        return [self._roots[label] for label in self._layers if label in self._roots]

    def has_unopened(self) -> bool:
        """Return whether an existing root is not open yet. It blocks on the disk."""
        return any(_exists(layer) for label, layer in self._layers.items() if label not in self._roots)

    async def open_existing(self) -> list[MemoryRoot]:
        """Return the roots that exist, narrowest first."""
        for label, layer in self._layers.items():
            if label not in self._roots and await run_in_thread(_exists, layer):
                await self._open_layer(layer)
        return self.open_roots

    async def root_for(self, scope: Scope) -> MemoryRoot:
        """Return the root for entries of `scope`, which is created if it does not exist.

        Raises: ScopeMismatch if it is none of the visible roots.
        """
        parts = scope.parts()
        for layer in self._layers.values():
            if _covers(layer.scope.parts(), parts):
                return await self._open_layer(layer)
        raise ScopeMismatch(
            f"What is saved for {scope} belongs to another place than those of {self.narrowest.scope}: open a memory "
            "for that scope."
        )

    async def _open_layer(self, layer: RootLayer) -> MemoryRoot:
        async with self._open_lock:
            if layer.label not in self._roots:
                self._roots[layer.label] = await self._open_root(layer)
        return self._roots[layer.label]


def _exists(layer: RootLayer) -> bool:
    return os.path.lexists(layer.folder / PROJECT_FILE)


def _covers(owner: Mapping[str, str], parts: Mapping[str, str]) -> bool:
    """Return whether `parts` has all parts of an owner but the tenant and a project's team, which the root names.

    A shared root does not cover a scope with a user.
    """
    if "user" in parts and "user" not in owner and not {"project", "team"}.isdisjoint(owner):
        return False
    implied = {"tenant"} | ({"team"} if "project" in owner else set())
    return all(parts.get(name) == value for name, value in owner.items() if name not in implied or len(owner) == 1)
