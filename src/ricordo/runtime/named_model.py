"""The agent's model where it is given by name: loaded with what the settings say of it."""

from dataclasses import asdict

from ricordo.models import ChatModel, ModelSettings
from ricordo.models.provider import load_model
from ricordo.runtime.settings import Settings

__all__ = ["load_agent_model"]


def load_agent_model(name: str, settings: Settings, given: ModelSettings | None = None) -> ChatModel:
    """Return the agent's model `name`, told what is `given`, by default what the settings say.

    See `load_model` for the errors.
    """
    return load_model(name, base_url=settings.base_url, **asdict(given or settings.model_settings))
