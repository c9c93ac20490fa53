"""Erase from all visible places, one after the other, each under the locks of its root."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ricordo.audit import chosen_id
from ricordo.audit.erase import (
    Erased,
    Root,
    begin_erasing,
    bury,
    erase_from,
    finish_erasing,
    needles_of,
    unfinished,
    versions_of,
)
from ricordo.errors import EntryNotFound, EraseIncomplete, InvalidEntry
from ricordo.language.scripts import joins_words
from ricordo.stores.capabilities import Layers
from ricordo.stores.place import Place
from ricordo.workspace.entry import Entry
from ricordo.workspace.needles import Needles
from ricordo.workspace.tombstones import content_digest, read_tombstones

__all__ = ["erase_everywhere", "erased_by"]

_FEWEST_LETTERS = 3
_FEWEST_JOINED = 2


async def erased_by(layers: Layers, entry_id: str) -> tuple[str, list[Entry]]:
    """Return the whole id of the entry, and all versions of it, also if it was forgotten before.

    Raises: EntryNotFound.
    """
    roots = [_root(place) for place in await layers.places()]
    try:
        chosen = (await layers.get(entry_id)).id
    except EntryNotFound:
        known: dict[str, None] = {}
        for root in roots:
            known |= dict.fromkeys([*(await read_tombstones(root.files)).ids, *await unfinished(root.files)])
        chosen = chosen_id([*known], entry_id)
    if any([(await unfinished(root.files)).get(chosen) for root in roots]):
        raise InvalidEntry(
            f"{chosen} is a text that was erased in part, and is not kept: give the same text once more."
        )
    return chosen, [entry for root in roots for entry in await versions_of(root, chosen)]


async def erase_everywhere(layers: Layers, *, entry_id: str = "", text: str = "", inside_words: bool = False) -> Erased:
    """Erase an entry, or all occurrences of a text, from every place, and return what was done.

    A text is erased where it is whole words, and with `inside_words` also as a part of longer words.

    Raises: EntryNotFound; InvalidEntry unless exactly one of both is given, and for a text that is too short;
    EraseIncomplete.
    """
    if bool(entry_id.strip()) == bool(text.strip()):
        raise InvalidEntry("Name what is to be erased: the id of a memory, or a text.")
    if text and _is_short(text):
        raise InvalidEntry(
            f"{text.strip()!r} is too short to be erased wherever it stands: give three letters or digits at least, "
            "or the id of a memory."
        )
    places = await layers.places()
    if entry_id:
        chosen, entries = await erased_by(layers, entry_id)
    else:
        chosen = await _begun(places, text) or places[0].ids.new()
        entries = [Entry(content=text, id=chosen)]
    roots = [_root(place) for place in places]
    for root in roots:
        await begin_erasing(root, chosen, text)
    ids, texts = [chosen], {text} if text else set[str]()
    if entry_id:
        # what says the same in other words goes with an entry; of a text nothing but the text itself
        ids = await _forgotten(layers, roots, chosen)
        entries += [entry for name in ids for root in roots for entry in await versions_of(root, name)]
        texts = {each for root in roots for name in ids for each in await needles_of(root, entries, name)}
    for root in roots:
        await bury(root, entries, chosen, with_copies=bool(entry_id))
    needles, done = Needles(texts, inside_words=inside_words), Erased(ids=tuple(ids))
    incomplete: list[EraseIncomplete] = []
    for place, root in zip(places, roots, strict=True):
        try:
            done = done.joined(await erase_from(root, needles))
        except EraseIncomplete as error:
            # go on with the other places
            incomplete.append(error)
            continue
        await place.index.refresh()
        await finish_erasing(root, chosen)
    if incomplete:
        raise incomplete[0]
    return done


async def _begun(places: Sequence[Place], text: str) -> str:
    """Return the id under which the erasing of a text was begun and not finished; empty for none."""
    for place in places:
        for name, digest in (await unfinished(place.files)).items():
            if digest == content_digest(text, place.key):
                return name
    return ""


def _is_short(text: str) -> bool:
    letters = [char for char in text if char.isalnum()]
    return len(letters) < (_FEWEST_JOINED if any(map(joins_words, letters)) else _FEWEST_LETTERS)


async def _forgotten(layers: Layers, roots: Sequence[Root], entry_id: str) -> list[str]:
    """Forget the entry if it is there, and return its id and those of entries that were forgotten with it."""
    before = [(await read_tombstones(root.files)).ids for root in roots]
    with suppress(EntryNotFound):
        await layers.forget(entry_id, who="user", why="erased")
    after = [(await read_tombstones(root.files)).ids for root in roots]
    new = {name for old, now in zip(before, after, strict=True) for name in now - old}
    return [entry_id, *sorted(new - {entry_id})]


def _root(place: Place) -> Root:
    return Root(
        files=place.files, changes=place.changes, folder=Path(place.folder), index=Path(place.index_path),
        key=place.key, clock=place.clock,
    )  # fmt: skip
