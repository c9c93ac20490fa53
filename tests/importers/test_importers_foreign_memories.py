"""Memories of other systems: mem0's and those of the MCP memory server, with all that they say."""

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from exports import NOON, mem0_memory, mem0_page, memory_graph
from importing import json_lines, take_all


@pytest.mark.parametrize(
    "content",
    [
        mem0_page("Likes oak.", "Has a lathe."),
        mem0_page("Likes oak.", "Has a lathe.")["results"],
        [mem0_page("Likes oak."), mem0_page("Has a lathe.", count=2, next=None, previous=None)],
        {"count": 2, "next": None, "previous": None, **mem0_page("Likes oak.", "Has a lathe.")},
        {"memories": mem0_page("Likes oak.", "Has a lathe.")["results"]},
        json_lines([mem0_memory("Likes oak."), mem0_memory("Has a lathe.", "id-2")]),
    ],
    ids=["get_all", "list", "pages", "page", "memories", "lines"],
)
def test_memories_of_mem0_are_read_from_whatever_holds_them(tmp_path: Path, content: Any) -> None:
    taken = take_all(tmp_path / "mem0.json", content)
    assert taken.told == ["Likes oak.", "Has a lathe."]
    assert set(taken.formats.values()) == {"mem0"}
    assert taken.problems == []


def test_a_memory_of_mem0_keeps_its_id_times_user_tags_and_every_other_field(tmp_path: Path) -> None:
    record = mem0_memory(
        "Likes oak.", categories=["wood", "taste"], agent_id="bot", run_id="r-1", score=0.5, new_field={"a": [1]}
    )
    (memory,) = take_all(tmp_path / "mem0.json", {"results": [record]}).memories
    assert (memory.text, memory.id, memory.user, memory.tags) == ("Likes oak.", "id-1", "ada", ("wood", "taste"))
    assert memory.time == NOON
    assert memory.metadata == {
        "category": "tools",
        "hash": "9c1e",
        "created_at": (NOON - timedelta(days=2)).isoformat(),
        "updated_at": NOON.isoformat(),
        "agent_id": "bot",
        "run_id": "r-1",
        "score": 0.5,
        "new_field": {"a": [1]},
    }


def test_a_memory_of_mem0_that_ends_keeps_its_last_day(tmp_path: Path) -> None:
    told = [mem0_memory("Is in Ghent.", expiration_date="2026-12-31"), mem0_memory("Likes oak.", expiration_date=None)]
    assert [each.until for each in take_all(tmp_path / "mem0.json", told).memories] == [date(2026, 12, 31), None]


def test_relations_of_mem0_are_memories(tmp_path: Path) -> None:
    relations = [{"source": "ada", "relationship": "works_in", "target": "ghent"}, {"source": "ada"}]
    taken = take_all(tmp_path / "mem0.json", mem0_page("Likes oak.", relations=relations))
    assert taken.told == ["Likes oak.", "ada works in ghent"]
    assert [(problem.record, problem.reason) for problem in taken.problems] == [
        (2, "The record has no source, relationship or target.")
    ]


def test_a_page_of_mem0_without_memories_is_no_mistake(tmp_path: Path) -> None:
    taken = take_all(tmp_path / "mem0.json", {"results": []})
    assert (taken.told, taken.problems, taken.formats) == ([], [], {"mem0.json": "mem0"})


@pytest.mark.parametrize(
    "content",
    [json_lines(memory_graph()), json.dumps({"entities": memory_graph()[:2], "relations": memory_graph()[2:]})],
    ids=["file", "read_graph"],
)
def test_observations_and_relations_of_a_graph_are_memories_that_can_be_understood_alone(
    tmp_path: Path, content: str
) -> None:
    taken = take_all(tmp_path / "memory.json", content)
    assert taken.told == [
        "Ada Lovelace: Likes oak",
        "Ada_Lovelace lives in Ghent",
        "Workshop (place)",
        "Ada Lovelace works in Workshop",
    ]
    assert taken.memories[0].metadata == {"entity": "Ada_Lovelace", "entity_type": "person"}
    assert taken.memories[3].metadata == {
        "relation_from": "Ada_Lovelace",
        "relation_type": "works_in",
        "relation_to": "Workshop",
    }
    assert taken.problems == []


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (mem0_memory("Likes oak."), [7, {"memory": ""}, {"memory": ["x"], "id": "y"}, None, {"id": "z"}]),
        (memory_graph()[0], [{"type": "entity"}, {"type": "relation", "from": "a"}, {"type": "vision"}, 7]),
    ],
    ids=["mem0", "graph"],
)
def test_a_record_that_is_none_is_reported_with_its_line_and_hides_no_other(
    tmp_path: Path, good: dict[str, Any], bad: list[Any]
) -> None:
    whole = take_all(tmp_path / "good.jsonl", json_lines([good]))
    taken = take_all(tmp_path / "bad.jsonl", json_lines([good, *bad, good]))
    assert taken.told == whole.told * 2
    assert taken.lines_with_problems == [line for line, _ in enumerate(bad, 2)]
