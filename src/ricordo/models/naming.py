"""The name of a model in a configuration, with the address that was given for it: what can be refused at once. Pure."""

from ricordo.errors import InvalidSetting
from ricordo.models.config import ModelSettings

__all__ = ["validate_model_name", "provider_name"]


def validate_model_name(model: object, base_url: object, settings: object = None) -> None:
    """Refuse a blank name, a blank address, and an address or settings without the name of a model.

    Raises: InvalidSetting.
    """
    if not isinstance(settings, ModelSettings | None):
        raise InvalidSetting(f"model_settings is a ModelSettings or None, not {settings!r}.")
    if settings not in {None, ModelSettings()} and not isinstance(model, str):
        raise InvalidSetting(
            "model_settings are for a model that is given by name; one that is made already has its own, which "
            "load_model takes."
        )
    if isinstance(model, str) and not model.strip():
        raise InvalidSetting("model names a model, or is None; this name is blank.")
    if base_url is None:
        return
    if not isinstance(base_url, str) or not base_url.strip():
        raise InvalidSetting(f"base_url is an address such as http://localhost:8000/v1, not {base_url!r}.")
    if not isinstance(model, str):
        raise InvalidSetting("base_url is the address of a model that is named beside it: set model too.")


def provider_name(name: str) -> str:
    """Return the provider that the name of a model begins with; empty where it names none."""
    provider, colon, _ = name.partition(":")
    return provider if colon else ""
