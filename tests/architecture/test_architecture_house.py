"""The house is easy to enter: few rooms and levels, plain names, and few files on the way of everyday acts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import measure_house
from measure_house import House, is_bare_participle
from source_tree import ROOT

MAX_FILES = {"send": 75, "remember": 37, "recall": 41, "consolidate": 68}
"""How many source files each act may enter; a change that needs more has to say why."""


@pytest.fixture(scope="module")
def house() -> House:
    return measure_house.measure(ROOT)


def test_there_are_few_rooms_on_few_levels(house: House) -> None:
    assert house.rooms <= 16
    assert house.top_files <= 6
    assert house.levels <= 12


def test_there_are_few_files(house: House) -> None:
    assert house.files <= 388
    assert house.edge_files <= 120


def test_functions_are_verbs_and_values_nouns(house: House) -> None:
    assert house.participles / house.functions <= 0.02
    assert [name for name in ("told", "_folded", "kept") if not is_bare_participle(name)] == []
    assert [name for name in ("tell", "fold_name", "seed", "put") if is_bare_participle(name)] == []


def test_a_public_class_name_stands_in_one_room(house: House) -> None:
    assert house.class_names_twice == ()


def test_tests_know_less_and_less_of_the_inside(house: House) -> None:
    assert house.test_edges <= 700


def test_everyday_acts_enter_few_files(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, str(ROOT / "scripts" / "trace_flows.py")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    counts = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in printed.splitlines())}
    assert counts.keys() == MAX_FILES.keys()
    assert {name: count for name, count in counts.items() if count > MAX_FILES[name]} == {}
