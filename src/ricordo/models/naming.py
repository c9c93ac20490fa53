"""The name of a model in a configuration, with the address that was given for it: what can be refused at once. Pure."""

from ricordo.errors import InvalidSetting

__all__ = ["check_named_model", "provider_of"]


def check_named_model(model: object, base_url: object) -> None:
    """Refuse a blank name, a blank address, and an address without the name of a model. Raises: InvalidSetting."""
    if isinstance(model, str) and not model.strip():
        raise InvalidSetting("model names a model, or is None; this name is blank.")
    if base_url is None:
        return
    if not isinstance(base_url, str) or not base_url.strip():
        raise InvalidSetting(f"base_url is an address such as http://localhost:8000/v1, not {base_url!r}.")
    if not isinstance(model, str):
        raise InvalidSetting("base_url is the address of a model that is named beside it: set model too.")


def provider_of(name: str) -> str:
    """Return the provider that the name of a model begins with; empty where it names none."""
    provider, colon, _ = name.partition(":")
    return provider if colon else ""
