"""The memory tools as a set: how much of a window they take, what they tell the model, and that each works alone."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from memory_shelf import shelf
from ricordo.agent import Tool, memory_tools
from ricordo.agent.tools import session_tools
from ricordo.messages import estimate_request
from ricordo.scope import Scope
from ricordo.testing import InMemoryFiles

pytestmark = pytest.mark.req("GO-G20", "GO-G21", "GO-LAYOUT")

BUDGET = 1_200
DEFAULT = ["remember", "recall", "memory_search", "memory_get", "session_list", "session_history", "session_search"]
TOLD = {
    "remember": "remembered.",
    "recall": "We deploy from main.",
    "memory_search": "We deploy from main.",
    "memory_get": "- We deploy from main.",
    "forget": "forgotten: the fact ",
    "memory_files": "File created successfully at: /memories/a.md",
}


def _default() -> list[Tool]:
    files = InMemoryFiles()
    return [*memory_tools(shelf(), files), *session_tools(files, agent="main", user="me", expand=True)]


def test_the_tools_that_are_always_there_take_few_tokens_together() -> None:
    specs = [tool.spec for tool in _default()]
    assert [spec.name for spec in specs] == DEFAULT
    assert estimate_request([], tools=specs).tools <= BUDGET


def test_each_tool_says_when_it_is_not_to_be_used() -> None:
    for tool in _default():
        description = tool.spec.description
        assert re.search(r"(?:^|\. |\n)Not for [^.]+\.", " ".join(description.split())), tool.spec.name
    for parameters in (tool.spec.parameters for tool in _default()):
        assert json.dumps(parameters)


def test_without_a_store_nothing_is_searched() -> None:
    assert [tool.spec.name for tool in memory_tools(None, None)] == ["remember", "recall"]
    assert [tool.spec.name for tool in memory_tools(shelf(), None)] == ["remember", "recall", "memory_search"]
    assert Scope(project="shop") == shelf().scope


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_each_memory_tool_is_used_alone_and_brings_no_harness() -> None:
    driver = Path(__file__).with_name("memory_tools_driver.py")
    path = {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    done = subprocess.run([sys.executable, driver, *TOLD], capture_output=True, text=True, check=True, env=path)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for module, (above, told) in zip(TOLD, answers, strict=True):
        assert above == [], module
        assert TOLD[module] in told, module
