"""Changes in the settings of other programs leave every other character as it is."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.errors import DocumentInvalid
from ricordo.hooks.install.json_text import (
    append_item,
    load_json,
    remove_items,
    remove_member,
    replace_items,
    set_member,
)
from ricordo.hooks.install.toml_text import remove_tables, set_values
from ricordo.messages import JsonValue

HOOK: JsonValue = {"hooks": [{"type": "command", "command": "ricordo hook codex Stop"}]}

COMMENTED = """\
{
    // my own hooks
    "hooks": {
        "Stop": [
            {"command": "say done"} // keep this one
        ],
    },
    "theme": "dark" /* not light */
}
"""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(st.text(max_size=6), json_values, max_size=5)
indents = st.sampled_from([None, 1, 2, 4, "\t"])
newlines = st.sampled_from(["\n", "\r\n"])


def test_an_item_joins_a_commented_list_and_leaves_it_without_a_trace() -> None:
    changed = append_item(COMMENTED, ("hooks", "Stop"), HOOK)
    assert load_json(changed) == {"hooks": {"Stop": [{"command": "say done"}, HOOK]}, "theme": "dark"}
    assert [
        line for line in COMMENTED.splitlines() if line.replace("}", "},", 1) not in changed and line not in changed
    ] == []
    assert remove_items(changed, ("hooks", "Stop"), lambda item: item == HOOK) == COMMENTED


@given(document=json_objects, indent=indents, newline=newlines, item=json_values)
def test_an_item_is_added_to_any_document_and_removed_again(
    document: dict[str, JsonValue], indent: int | str | None, newline: str, item: JsonValue
) -> None:
    document.pop("ours", None)
    before = json.dumps(document, indent=indent).replace("\n", newline) + newline
    changed = append_item(before, ("ours", "list"), [item, "mine"])
    assert load_json(changed) == {**document, "ours": {"list": [[item, "mine"]]}}
    assert newline == "\n" or "\n" not in changed.replace("\r\n", "")
    assert remove_items(changed, ("ours", "list"), lambda each: isinstance(each, list) and "mine" in each) == before


@given(document=json_objects, indent=indents, value=json_values)
def test_a_member_is_set_in_any_document_and_removed_again(
    document: dict[str, JsonValue], indent: int | str | None, value: JsonValue
) -> None:
    document["table"] = {"other": 1}
    before = json.dumps(document, indent=indent)
    changed = set_member(set_member(before, ("table", "ours"), "old"), ("table", "ours"), value)
    assert load_json(changed) == {**document, "table": {"other": 1, "ours": value}}
    assert remove_member(changed, ("table", "ours")) == before


@given(position=st.integers(min_value=0, max_value=3), indent=indents)
def test_an_older_item_is_replaced_in_its_place(position: int, indent: int | str | None) -> None:
    others: list[JsonValue] = [{"n": number} for number in range(3)]
    items = [*others[:position], {"ours": 1}, *others[position:]]
    changed = replace_items(
        json.dumps({"list": items}, indent=indent), ("list",), lambda each: "ours" in str(each), "new"
    )
    assert load_json(changed) == {"list": [*others[:position], "new", *others[position:]]}


def test_removing_an_item_in_the_middle_keeps_the_comments_of_the_others() -> None:
    text = '{"list": [\n  1, // one\n  "ours",\n  2 // two\n]}'
    assert remove_items(text, ("list",), lambda each: each == "ours") == '{"list": [\n  1, // one\n  2 // two\n]}'


@pytest.mark.parametrize(
    ("text", "line"),
    [("{", 1), ('{\n"a" 1}', 2), ('{"a": [1 2]}', 1), ('{"a": tru}', 1), ("{}\n\nmore", 3), ("[" * 200 + "]" * 200, 1)],
)
def test_a_damaged_document_is_refused_with_its_line(text: str, line: int) -> None:
    with pytest.raises(DocumentInvalid, match=f"line {line}:"):
        append_item(text, ("hooks",), 1)


@pytest.mark.parametrize("text", ["[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}'])
def test_a_document_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid):
        append_item(text, ("hooks", "Stop"), HOOK)


TOML = """\
# mine
model = "gpt"   # the model

[mcp_servers.docs]   # others
command = "docs"
args = [
  "[not a table]", # comment
]
text = '''
[mcp_servers.ricordo]
'''
"""


def test_a_table_is_appended_and_removed_without_a_trace() -> None:
    changed = set_values(TOML, ("mcp_servers", "ricordo"), {"command": "/bin/ricordo", "args": ["mcp"]})
    assert changed.startswith(TOML)
    assert tomllib.loads(changed)["mcp_servers"]["ricordo"] == {"command": "/bin/ricordo", "args": ["mcp"]}
    assert remove_tables(changed, lambda path: path == ("mcp_servers", "ricordo")) == TOML


def test_an_older_table_gets_the_new_values_and_keeps_what_a_person_added() -> None:
    text = '[mcp_servers.ricordo]\ncommand = "/old/ricordo" # moved\nenabled = false\n\n[other]\nx = 1\n'
    changed = set_values(text, ("mcp_servers", "ricordo"), {"command": "/new/ricordo", "args": ["mcp"]})
    assert changed == (
        '[mcp_servers.ricordo]\ncommand = "/new/ricordo" # moved\nenabled = false\nargs = ["mcp"]\n\n[other]\nx = 1\n'
    )
    assert set_values(changed, ("mcp_servers", "ricordo"), {"command": "/new/ricordo"}) == changed


def test_a_removed_table_takes_the_tables_below_it_along() -> None:
    text = '[a]\nx = 1\n\n[ours]\ny = 2\n\n[ours.env]\nz = 3\n\n["b.c"]\nw = 4\n'
    assert remove_tables(text, lambda path: path == ("ours",)) == '[a]\nx = 1\n\n["b.c"]\nw = 4\n'


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = { docs = { command = "x" } }\n', 'mcp_servers.ricordo.command = "x"\n', "[[mcp_servers]]\nx=1\n"],
)
def test_a_table_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid, match="form"):
        set_values(text, ("mcp_servers", "ricordo"), {"command": "y"})


@pytest.mark.parametrize("text", ["", "\n", "x = 1", "x = 1\r\n", "[a]\r\nx = 1\r\n", "# only a comment\n"])
def test_a_table_joins_any_file_with_its_line_ends(text: str) -> None:
    changed = set_values(text, ("t",), {"y": True})
    assert changed.startswith(text)
    assert tomllib.loads(changed)["t"] == {"y": True}
    assert "\r\n" not in text or "\n" not in changed.replace("\r\n", "")
    assert remove_tables(changed, lambda path: path == ("t",)).rstrip() == text.rstrip()


@given(
    document=st.dictionaries(
        st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.integers() | st.text(max_size=9).map(repr), max_size=4
    ),
    value=st.text(max_size=20),
)
def test_any_text_is_a_value(document: dict[str, JsonValue], value: str) -> None:
    text = "".join(
        f"{key} = {json.dumps(item, ensure_ascii=False)}\n"
        for key, item in document.items()
        if chr(127) not in str(item)
    )
    changed = set_values(text, ("ours", "t"), {"v": value})
    assert tomllib.loads(changed)["ours"]["t"] == {"v": value}
    assert changed.startswith(text)
