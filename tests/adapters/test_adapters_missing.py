"""An adapter whose framework is missing says which extra to install."""

import importlib
import importlib.util
import sys

import pytest

from ricordo import Scope
from ricordo.errors import ExtraMissing


@pytest.mark.parametrize(
    ("module", "name", "framework", "extra"),
    [("ricordo.adapters.openai_agents", "RicordoSession", "agents", "openai-agents")],
)
def test_a_missing_framework_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, module: str, name: str, framework: str, extra: str
) -> None:
    find = importlib.util.find_spec
    adapter = importlib.import_module(module)
    monkeypatch.setattr(adapter, "find_spec", lambda each: None if each == framework else find(each))
    with pytest.raises(ExtraMissing, match=rf"\[{extra}\]"):
        getattr(adapter, name)("s1", scope=Scope(project="shop"))


@pytest.mark.parametrize(
    ("module", "framework", "extra"),
    [
        ("ricordo.adapters.claude_agent_sdk", "claude_agent_sdk", "claude-agent-sdk"),
        ("ricordo.adapters.langchain", "langchain", "langchain"),
        ("ricordo.adapters.langgraph", "langgraph", "langgraph"),
        ("ricordo.adapters.pydantic_ai", "pydantic_ai", "models"),
    ],
)
def test_a_missing_framework_is_named_when_its_adapter_is_imported(
    monkeypatch: pytest.MonkeyPatch, module: str, framework: str, extra: str
) -> None:
    for name in [*sys.modules]:
        if name == module or name.split(".")[0] == framework:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, framework, None)
    with pytest.raises(ExtraMissing, match=rf"\[{extra}\]"):
        importlib.import_module(module)
