"""Copies of a profile that nobody can change it through. Pure."""

from copy import deepcopy
from dataclasses import replace

from ricordo.workspace.profile import Profile

__all__ = ["copy_profile"]


def copy_profile(profile: Profile) -> Profile:
    """Return a profile equal to this one in which nothing can be changed that this one holds."""
    return replace(
        profile,
        summaries={name: replace(each, extra=deepcopy({**each.extra})) for name, each in profile.summaries.items()},
        facts=tuple(replace(fact, extra=deepcopy({**fact.extra})) for fact in profile.facts),
        extra=deepcopy({**profile.extra}),
    )
