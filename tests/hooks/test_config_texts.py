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
from ricordo.hooks.install.parts import ManagedBlock, TomlTable
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


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ('{\n  "a": 1, // one\n}\n', {"a": 1, "t": {"ours": 2}}),
        ('{"a": [1, 2],}', {"a": [1, 2], "t": {"ours": 2}}),
        ('{\n  "t": {\n    "a": 1,\n  },\n}\n', {"t": {"a": 1, "ours": 2}}),
    ],
)
def test_a_comma_behind_the_last_member_is_there_before_and_after(before: str, expected: JsonValue) -> None:
    changed = set_member(before, ("t", "ours"), 2)
    assert load_json(changed) == expected
    assert remove_member(changed, ("t", "ours")) == before


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


def _set_values(text: str, place: tuple[str, ...], values: dict[str, JsonValue]) -> str:
    return TomlTable(path="config.toml", place=place, values=values).add(text)


def _remove_table(text: str, *place: str) -> str:
    return TomlTable(path="config.toml", place=place, values={}).remove(text) or ""


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
    changed = _set_values(TOML, ("mcp_servers", "ricordo"), {"command": "/bin/ricordo", "args": ["mcp"]})
    assert changed.startswith(TOML)
    assert tomllib.loads(changed)["mcp_servers"]["ricordo"] == {"command": "/bin/ricordo", "args": ["mcp"]}
    assert _remove_table(changed, "mcp_servers", "ricordo") == TOML


def test_an_older_table_gets_the_new_values_and_keeps_what_a_person_added() -> None:
    text = '[mcp_servers.ricordo]\ncommand = "/old/ricordo" # moved\nenabled = false\n\n[other]\nx = 1\n'
    changed = _set_values(text, ("mcp_servers", "ricordo"), {"command": "/new/ricordo", "args": ["mcp"]})
    assert changed == (
        '[mcp_servers.ricordo]\ncommand = "/new/ricordo" # moved\nenabled = false\nargs = ["mcp"]\n\n[other]\nx = 1\n'
    )
    assert _set_values(changed, ("mcp_servers", "ricordo"), {"command": "/new/ricordo"}) == changed


def test_a_removed_table_takes_the_tables_below_it_along() -> None:
    text = '[a]\nx = 1\n\n[ours]\ny = 2\n\n[ours.env]\nz = 3\n\n["b.c"]\nw = 4\n'
    assert (
        _remove_table(
            text,
            "ours",
        )
        == '[a]\nx = 1\n\n["b.c"]\nw = 4\n'
    )


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = { docs = { command = "x" } }\n', 'mcp_servers.ricordo.command = "x"\n', "[[mcp_servers]]\nx=1\n"],
)
def test_a_table_in_another_form_is_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid, match="form"):
        _set_values(text, ("mcp_servers", "ricordo"), {"command": "y"})


@pytest.mark.parametrize("text", ["", "\n", "x = 1", "x = 1\r\n", "[a]\r\nx = 1\r\n", "# only a comment\n"])
def test_a_table_joins_any_file_with_its_line_ends(text: str) -> None:
    changed = _set_values(text, ("t",), {"y": True})
    assert changed.startswith(text)
    assert tomllib.loads(changed)["t"] == {"y": True}
    assert "\r\n" not in text or "\n" not in changed.replace("\r\n", "")
    assert (
        _remove_table(
            changed,
            "t",
        ).rstrip()
        == text.rstrip()
    )


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
    changed = _set_values(text, ("ours", "t"), {"v": value})
    assert tomllib.loads(changed)["ours"]["t"] == {"v": value}
    assert changed.startswith(text)


markdown = st.text(alphabet="ab#-<!>\n", max_size=30)


@given(text=markdown, newline=newlines, content=st.text(alphabet="xy \n", min_size=1, max_size=20))
def test_a_block_joins_any_text_and_leaves_it_without_a_trace(text: str, newline: str, content: str) -> None:
    before = text.replace("\n", newline)
    block = ManagedBlock(path="AGENTS.md", content=content)
    changed = block.add(before)
    assert changed.startswith(before)
    assert block.add(changed) == changed
    assert (block.remove(changed) or "") == before
    newer = ManagedBlock(path="AGENTS.md", content="newer")
    assert "newer" in newer.add(changed)
    assert (newer.remove(newer.add(changed)) or "") == before


@given(text=markdown, after=markdown)
def test_what_is_written_after_a_block_stays(text: str, after: str) -> None:
    block = ManagedBlock(path="AGENTS.md", content="ours")
    before = f"{text}\n"
    assert (block.remove(block.add(before) + after) or "") == before + after


@pytest.mark.parametrize(
    "text",
    ["<!-- ricordo: begin -->\nx\n", "<!-- ricordo: end -->\n", "<!-- ricordo: end -->\n<!-- ricordo: begin -->"],
)
def test_a_block_that_is_not_whole_is_refused(text: str) -> None:
    block = ManagedBlock(path="AGENTS.md", content="ours")
    for act in (block.add, block.remove):
        with pytest.raises(DocumentInvalid, match="not whole"):
            act(text)
