"""Record what goes over the wire in one turn: `python scripts/record_turn.py`.

An agent answers one question with one call of a tool, once over OpenAI's chat completions and once over Anthropic's
messages, against a server on this machine. Printed is each request as the server received it, a JSON object a line:
path, headers without those that differ between machines, and body; keys read `***`.
"""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ricordo import BuiltinTools, Scope
from ricordo.agent.sync import SyncHarnessAgent
from ricordo.agent.tools import tool
from ricordo.models.provider import load_model
from ricordo.runtime import Settings
from ricordo.testing import Call, LoopbackServer, Say

__all__ = ["main", "recorded"]

MODELS = {"openai-chat:gpt-5": "/v1", "anthropic:claude-sonnet-5": ""}
KEPT = ("anthropic-version", "authorization", "content-type", "x-api-key")


@tool
def branch() -> str:
    """Tell which branch is deployed."""
    return "main"


def main() -> None:
    """Print the requests of every model."""
    for name in MODELS:
        for request in recorded(name):
            print(json.dumps(request, ensure_ascii=False))


def recorded(name: str) -> Iterator[dict[str, object]]:
    """Yield the requests of one turn with the model of this name."""
    with (
        LoopbackServer([Call("branch", id="call_1"), Say("We deploy from main.")]) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        root = Path(folder)
        model = load_model(name, base_url=server.url + MODELS[name], api_key="not-a-key")
        with SyncHarnessAgent.open(
            model,
            memory=root / ".ricordo",
            scope=Scope(user="me", project="shop"),
            tools=[branch],
            builtin_tools=BuiltinTools(memory=False),
            settings=Settings(root=None, user="me", data=root / "data", cache=root / "cache", flush=None),
        ) as agent:
            agent.send("Which branch do we deploy from?")
        for request in server.requests:
            headers = {each: request.headers[each] for each in KEPT if each in request.headers}
            yield {"model": name, "path": request.path, "headers": headers, "body": dict(request.body)}


if __name__ == "__main__":
    main()
