"""The gate: which item of an update may be carried out at all. Pure.

Invariant: it fails closed, item by item. A label that is missing or unknown turns its item down and no other, and a
reason is one word that can be counted, never anything of the content.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import isfinite

from ricordo.profile.types import UpdateLabels, RejectedItem, FactRemoval
from ricordo.workspace.profile import Fact

__all__ = [
    "count_rejections",
    "find_fact_flaw",
    "find_removal_flaw",
    "find_summary_flaw",
    "names_upload",
    "parse_confidence",
]

_USER, _DURABLE, _DESCRIPTIVE = "user", "durable", "descriptive"


def find_fact_flaw(labels: UpdateLabels) -> str:
    """Return the label for which a fact is turned down; empty for one about the user that lasts and describes."""
    if labels.scope != _USER:
        return "scope"
    if labels.durability != _DURABLE:
        return "durability"
    return "" if labels.authority == _DESCRIPTIVE else "authority"


def find_summary_flaw(labels: UpdateLabels) -> str:
    """Return the label for which a summary is turned down; empty for one about the user that describes."""
    if labels.scope != _USER:
        return "scope"
    return "" if labels.authority == _DESCRIPTIVE else "authority"


def find_removal_flaw(removal: FactRemoval, fact: Fact | None) -> str:
    """Return why a removal of `fact` is turned down; empty for one about the user with a reason.

    What a person gave or pinned stays, and so does what isn't there.
    """
    if removal.labels.scope != _USER:
        return "scope"
    if not removal.reason.strip():
        return "reason"
    if fact is None:
        return "unknown"
    return "kept" if fact.is_protected else ""


def parse_confidence(confidence: object) -> float | None:
    """Return a confidence as a number from 0 to 1, one beyond that cut; None for what is no finite number."""
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)):
        return None
    try:
        value = float(confidence)
    except OverflowError:
        return None
    return min(max(value, 0.0), 1.0) if isfinite(value) else None


def names_upload(text: str, uploads: Iterable[str]) -> bool:
    """Tell whether a text names a file that was handed over, as the metadata of the messages say, whole."""
    folded = text.casefold()
    return any(_contains_name(name.casefold(), folded) for name in uploads if name.strip())


def count_rejections(rejections: Iterable[RejectedItem]) -> Mapping[tuple[str, str], int]:
    """Return how many items were turned down, by what they are and why."""
    return Counter((each.item, each.reason) for each in rejections)


def _contains_name(name: str, text: str) -> bool:
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        before, after = text[at - 1 : at], text[end : end + 1]
        if not (before.isalnum() or before in {"_", "-"}) and not (after.isalnum() or after in {"_", "-"}):
            return True
        at = text.find(name, at + 1)
    return False
