"""An address is read back from its text as what it is, and what is none is told how one looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ricordo.errors import InvalidSetting
from ricordo.stores import SCHEMES
from ricordo.stores.addresses import Address, join_addresses, parse_address, split_addresses

pytestmark = pytest.mark.req("GO-BK-plug", "GO-SWAP")

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
ADDRESSES = st.builds(
    lambda scheme, place, options: Address(scheme=scheme, location=place, options=options),
    st.sampled_from([*SCHEMES, "my-own"]),
    TEXTS,
    st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=2),
)


@given(ADDRESSES)
def test_an_address_is_read_back_from_its_text(address: Address) -> None:
    assert parse_address(str(address)) == address


@given(st.lists(ADDRESSES, min_size=1, max_size=3))
def test_addresses_in_an_address_are_read_back_in_their_order(addresses: list[Address]) -> None:
    outer = Address(scheme="fanout", location=join_addresses([str(address) for address in addresses]))
    read = parse_address(str(outer))
    assert read == outer
    assert [parse_address(inner) for inner in split_addresses(read.location)] == addresses


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("./.harness", Address(scheme="sessions", location="./.harness")),
        ("/var/a:b", Address(scheme="sessions", location="/var/a:b")),
        ("./a:b", Address(scheme="sessions", location="./a:b")),
        ("C:\\notes", Address(scheme="sessions", location="C:\\notes")),
        ("./notes?last=3", Address(scheme="sessions", location="./notes", options={"last": "3"})),
        (" jsonl:./my notes ", Address(scheme="jsonl", location="./my notes")),
        ("JSONL:Notes", Address(scheme="jsonl", location="Notes")),
        ("jsonl:100%", Address(scheme="jsonl", location="100%")),
        ("kv:/var/lib/notes", Address(scheme="kv", location="/var/lib/notes")),
        ("ring:?capacity=500", Address(scheme="ring", options={"capacity": "500"})),
        ("vector:v?model=a%26b=c", Address(scheme="vector", location="v", options={"model": "a&b=c"})),
        ("none", Address(scheme="none")),
        ("./none", Address(scheme="sessions", location="./none")),
        ("third-party:", Address(scheme="third-party")),
        ("fanout:jsonl:a,kv:b", Address(scheme="fanout", location="jsonl:a,kv:b")),
    ],
)
def test_an_address_says_the_backend_the_place_and_the_options(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["", "  ", ":./notes", "jsonl:a\0b", "jsonl:a%00b"])
def test_a_text_that_is_no_address_is_told_the_form_and_the_schemes(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"scheme:place.*none, sessions, markdown"):
        parse_address(text)


@pytest.mark.parametrize("text", ["jsonl", "KV", " fanout "])
def test_a_scheme_alone_that_needs_a_place_is_no_folder_of_that_name(text: str) -> None:
    with pytest.raises(InvalidSetting, match=r"names no place: write one, such as [a-z]+:\./notes"):
        parse_address(text)


@pytest.mark.parametrize("text", ["ring:?capacity", "ring:?=5", "ring:?a=1&a=2", "ring:?a=1&"])
def test_an_option_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting, match="name=value"):
        parse_address(text)


def test_addresses_in_an_address_keep_their_options_and_their_commas() -> None:
    read = parse_address("fanout:ring:%3Fcapacity=500, jsonl:a%252Cb")
    assert split_addresses(read.location) == ("ring:?capacity=500", "jsonl:a,b")
    with pytest.raises(InvalidSetting, match="comma"):
        split_addresses("jsonl:a,,kv:b")
