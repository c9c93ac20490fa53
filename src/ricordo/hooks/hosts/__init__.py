"""The registry of hosts: one line for each, loaded by its name."""

from importlib import import_module

from ricordo.hooks.contract import PROMPT, HookEvent, Host

__all__ = ["HOST_NAMES", "load_host", "read_event"]


_MODULES = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "cursor": "cursor",
    "vscode": "vscode",
}
HOST_NAMES = tuple(_MODULES)
"""The names of all hosts, as the command line takes them."""


def load_host(name: str) -> Host | None:
    """Return the host with this name, or None if there is none."""
    if name not in _MODULES:
        return None
    host: Host = import_module(f"ricordo.hooks.hosts.{_MODULES[name]}").HOST
    return host


def read_event(host: Host, name: str, payload: object) -> HookEvent | None:
    """Return the event that a host calls `name` from its JSON; None if the host has no such event.

    Unknown keys and values that are no text are ignored, missing ones are empty. Of a list the first text counts.
    """
    kind = host.events.get(name)
    if kind is None:
        return None
    values = payload if isinstance(payload, dict) else {}
    texts = {
        field: next(filter(None, (_read_text(values.get(key)) for key in keys)), "")
        for field, keys in host.fields.items()
    }
    event = HookEvent(kind=kind, host=host.name, name=name, **texts)
    return event._replace(text=host.clean_text(event.text)) if kind == PROMPT else event


def _read_text(value: object) -> str:
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, str) else ""
