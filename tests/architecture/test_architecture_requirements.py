"""Requirements and claims fit together: every claim names a row, and every row can be claimed."""

import ast
from collections.abc import Iterator

from requirements import LEVELS, Claims, known_ids, load_rows, render_table, report
from source_tree import ROOT

REQUIREMENTS = ROOT / "tests" / "requirements.toml"


def _claims() -> Iterator[tuple[str, ast.expr]]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "req"):
                continue
            if ast.unparse(node.func).endswith("mark.req"):
                for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                    yield f"{path.name}:{node.lineno}", argument


def test_every_claim_is_a_literal_id_that_exists() -> None:
    known = known_ids(load_rows(REQUIREMENTS))
    wrong = [
        f"{where}: {ast.unparse(argument)}"
        for where, argument in _claims()
        if not (isinstance(argument, ast.Constant) and argument.value in known)
    ]
    assert wrong == []


def test_every_row_has_an_id_of_its_own_and_a_known_level() -> None:
    rows = load_rows(REQUIREMENTS)
    names = [name for row in rows for name in (row.id, *row.also)]
    assert len(names) == len(set(names))
    assert {row.level for row in rows} == set(LEVELS)
    assert all(row.area for row in rows)


def test_a_claim_counts_only_if_it_passed_and_nothing_contradicts_it() -> None:
    rows = load_rows(REQUIREMENTS)
    first, second, third = (row.id for row in rows[:3])
    claims = Claims()
    claims.record([first, second], outcome="passed")
    claims.record([second], outcome="failed")
    claims.record([third], outcome="skipped")
    told = report(rows, claims)
    assert told["passing"] == [first]
    assert told["claimed"] == sorted([first, second, third])
    assert set(told["open"]) == {row.id for row in rows} - {first}


def test_the_other_origins_of_a_row_do_not_stand_in_for_it() -> None:
    rows = load_rows(REQUIREMENTS)
    row = next(row for row in rows if row.also)
    claims = Claims()
    claims.record(row.also[:1], outcome="passed")
    told = report(rows, claims)
    assert told["also"] == [row.also[0]]
    assert row.id in told["open"]


def test_the_table_adds_up() -> None:
    rows = load_rows(REQUIREMENTS)
    table = render_table(rows, [row.id for row in rows[:10]]).splitlines()
    assert len(table) == 2 + len({row.area for row in rows})
    assert table[-1].split()[-2:] == [f"10/{len(rows)}", str(len(rows) - 10)]
