"""Small pieces: the size budget of functions and files, over the package."""

import ast
import statistics

from source_tree import definitions, modules

FUNCTION_MEDIAN = 5
FUNCTION_90TH = 13
FUNCTION_CAP = 40
FILE_CAP = 600
PACK_CAP = 1_400
"""For a pack, which is data: a language is one file."""


def _functions() -> dict[str, int]:
    """Return the number of statements of each function; its lines depend on its arguments and on the formatter."""
    return {
        f"{module.name}.{name}": sum(isinstance(each, ast.stmt) for part in node.body for each in ast.walk(part))
        for module in modules()
        for name, node in definitions(module)
        if not isinstance(node, ast.ClassDef)
    }


def test_no_function_has_more_statements_than_the_cap() -> None:
    assert {name: count for name, count in _functions().items() if count > FUNCTION_CAP} == {}


def test_half_of_the_functions_are_tiny_and_nine_in_ten_are_short() -> None:
    counts = sorted(_functions().values())
    assert statistics.median(counts) <= FUNCTION_MEDIAN
    assert counts[int(len(counts) * 0.9)] <= FUNCTION_90TH


def test_no_file_is_longer_than_the_cap() -> None:
    lengths = {module.name: len(module.text.splitlines()) for module in modules()}
    caps = {name: PACK_CAP if name.startswith("ricordo.language.packs.") else FILE_CAP for name in lengths}
    assert {name: lines for name, lines in lengths.items() if lines > caps[name]} == {}
