"""The agent: its loop, its middleware, its tools, and what a session of it keeps."""

from typing import TYPE_CHECKING

from ricordo.lazy import lazy_exports

if TYPE_CHECKING:
    from ricordo.agent.agent import HarnessAgent
    from ricordo.agent.contract import TurnStream

__all__ = ["HarnessAgent", "TurnStream"]

__getattr__ = lazy_exports(
    __name__,
    {
        ".agent": "HarnessAgent",
        ".contract": "TurnStream",
    },
)
