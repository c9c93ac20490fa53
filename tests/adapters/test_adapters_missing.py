"""An adapter whose framework is missing says which extra to install."""

import importlib.util

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
