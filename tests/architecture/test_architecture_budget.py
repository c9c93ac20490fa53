"""Small pieces: the size budget of functions, files and classes, over the package."""

import ast
import statistics

from source_tree import Definition, definitions, modules

FUNCTION_MEDIAN = 10
FUNCTION_90TH = 30
FUNCTION_CAP = 60
FILE_CAP = 400
PUBLIC_METHODS_CAP = 15


def _lines(node: Definition) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _functions() -> dict[str, int]:
    return {
        f"{module.name}.{name}": _lines(node)
        for module in modules()
        for name, node in definitions(module)
        if not isinstance(node, ast.ClassDef)
    }


def test_no_function_is_longer_than_the_cap() -> None:
    assert {name: lines for name, lines in _functions().items() if lines > FUNCTION_CAP} == {}


def test_half_of_the_functions_are_tiny_and_nine_in_ten_are_short() -> None:
    lengths = sorted(_functions().values())
    assert statistics.median(lengths) <= FUNCTION_MEDIAN
    assert lengths[int(len(lengths) * 0.9)] <= FUNCTION_90TH


def test_no_file_is_longer_than_the_cap() -> None:
    lengths = {module.name: len(module.text.splitlines()) for module in modules()}
    assert {name: lines for name, lines in lengths.items() if lines > FILE_CAP} == {}


def test_no_class_has_more_public_methods_than_the_cap() -> None:
    counts = {
        f"{module.name}.{name}": len(_public_methods(node))
        for module in modules()
        for name, node in definitions(module)
        if isinstance(node, ast.ClassDef)
    }
    assert {name: count for name, count in counts.items() if count > PUBLIC_METHODS_CAP} == {}


def _public_methods(node: ast.ClassDef) -> set[str]:
    """Return the names that are called; a property is read like an attribute, and does not count."""
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {method.name for method in methods if not method.name.startswith("_") and not _is_property(method)}


def _is_property(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith(("property", ".setter")) for decorator in method.decorator_list)
