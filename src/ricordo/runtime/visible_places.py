"""Visible places: which places one scope sees, narrowest first, and when each is opened.

With a user and a project or a team these are the user's own in that root, the one that the root shares, and the user's
own root for all of their projects. The narrowest is always open, the others are opened when they are needed first.
"""

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from ricordo.errors import ScopeMismatch
from ricordo.runtime.marker import owner_of
from ricordo.runtime.roots import place_root, user_root
from ricordo.scopes import Scope
from ricordo.stores.place import SHARED_LABEL, Place
from ricordo.uncut import uncut_in_thread
from ricordo.workspace.layout import PROJECT

__all__ = ["USER_LABEL", "Layer", "VisiblePlaces", "layers_of"]

USER_LABEL = "user"
"""The label of a user's own root, where a place of a project comes first."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A place that a scope sees: its label, the folder where it lies or would, and whose it is."""

    label: str
    folder: Path
    scope: Scope


def layers_of(root: Path, scope: Scope, data: Path) -> tuple[Layer, ...]:
    """Return the layers of `scope` in `root`, narrowest first; `data` holds the users' own roots."""
    owner, folder = owner_of(scope), place_root(root, scope)
    label = "project" if scope.project is not None else "own"
    if folder == root or scope.user is None:
        return (Layer(label=label, folder=root, scope=owner),)
    return (
        Layer(label=label, folder=folder, scope=Scope(**owner.parts() | {"user": scope.user})),
        Layer(label=SHARED_LABEL, folder=root, scope=owner),
        Layer(
            label=USER_LABEL,
            folder=user_root(data, scope.user, scope.tenant),
            scope=Scope(user=scope.user, tenant=scope.tenant),
        ),
    )


class VisiblePlaces:
    """The places of one scope, which are opened by `open_place` and closed by whoever opened them."""

    def __init__(
        self, layers: Sequence[Layer], narrowest: Place, open_place: Callable[[Layer], Awaitable[Place]]
    ) -> None:
        """Have `narrowest`, which is the place of the first layer, open and no other."""
        self._layers = {layer.label: layer for layer in layers}
        self._open_place = open_place
        self._places = {layers[0].label: narrowest}
        self._opening = anyio.Lock()
        self.narrowest = narrowest

    @property
    def opened(self) -> list[Place]:
        """The places that are open, narrowest first."""
        return [self._places[label] for label in self._layers if label in self._places]

    def is_missed(self) -> bool:
        """Tell whether there is a place that is not open yet. It blocks on the disk."""
        return any(_is_there(layer) for label, layer in self._layers.items() if label not in self._places)

    async def existing(self) -> list[Place]:
        """Return the places that exist, narrowest first."""
        for label, layer in self._layers.items():
            if label not in self._places and await uncut_in_thread(_is_there, layer):
                await self._opened(layer)
        return self.opened

    async def of(self, scope: Scope) -> Place:
        """Return the place of what is saved for `scope`, which is made if it is not there.

        Raises: ScopeMismatch where none of those that are seen is its place.
        """
        wanted = scope.parts()
        for layer in self._layers.values():
            if _is_within(layer.scope.parts(), wanted):
                return await self._opened(layer)
        raise ScopeMismatch(
            f"What is saved for {scope} belongs to another place than those of {self.narrowest.scope}: open a memory "
            "for that scope."
        )

    async def _opened(self, layer: Layer) -> Place:
        async with self._opening:
            if layer.label not in self._places:
                self._places[layer.label] = await self._open_place(layer)
        return self._places[layer.label]


def _is_there(layer: Layer) -> bool:
    return os.path.lexists(layer.folder / PROJECT)


def _is_within(owner: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Tell whether `wanted` names all of an owner but the tenant, and the team of a project, which the root says.

    What is shared has no user.
    """
    if "user" in wanted and "user" not in owner and not {"project", "team"}.isdisjoint(owner):
        return False
    said = {"tenant"} | ({"team"} if "project" in owner else set())
    return all(wanted.get(name) == value for name, value in owner.items() if name not in said or len(owner) == 1)
