"""Endpoints: where a model is reached that a setting names. Pure.

An address belongs to the model that it was given for, and so does the key that is sent there. The address of the
agent's model serves other models of its provider as well. Of any other model nobody said whether it is reached there
or at its provider, so it is refused, and nothing of a conversation goes to a public address by mistake.
"""

from ricordo.errors import InvalidSetting
from ricordo.harness.offline import OFFLINE
from ricordo.models import ChatModel
from ricordo.models.naming import provider_name
from ricordo.models.reached import get_base_url

__all__ = ["check_endpoint_owner", "resolve_endpoint"]


def resolve_endpoint(
    name: str, *, variable: str, own: str | None, base_url: str | None, owner: str | None, agent: ChatModel | None
) -> str | None:
    """Return the address of the model `name`, None for that of its provider.

    `own` is the address that was given for it, which `variable` of the environment gives too, empty where none does.
    `base_url` is the address that was given for `owner`, the model that the settings name; without that name it belongs
    to `agent`, the agent's model.

    Raises: InvalidSetting if the agent's model has an address and nobody said whether this model is reached there.
    """
    agents = get_base_url(agent)
    if own is not None or (base_url is None and agents is None):
        return own
    held = owner if owner not in {None, OFFLINE} else agent.name if agent else ""
    if base_url is not None and agents in {None, base_url} and provider_name(held) == provider_name(name):
        return base_url
    whose = f"the address of {held}" if held else "an address, but no model that it belongs to"
    told = f"set {variable}, or give " if variable else "give "
    raise InvalidSetting(
        f"It is not clear where {name} is reached, so it is not asked: the settings hold {whose}. To say where it is,"
        f" {told}a model made by load_model({name!r}, base_url=...)."
    )


def check_endpoint_owner(owner: object, name: object, *, base_url: object) -> None:
    """Refuse the model `name` in place of `owner` of another provider, for which `base_url` was given.

    Raises: InvalidSetting.
    """
    if base_url is None or not isinstance(owner, str) or not isinstance(name, str) or OFFLINE in {owner, name}:
        return
    if provider_name(owner) != provider_name(name):
        raise InvalidSetting(
            f"It is not clear where {name} is reached, so it is not asked: base_url was given for {owner}. Set"
            f" RICORDO_BASE_URL to the address of {name}, or leave it out."
        )
