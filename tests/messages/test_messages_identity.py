"""Stable ids and the chain of parents."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_strategies import messages
from ricordo.messages import (
    Message,
    Text,
    count_fingerprints,
    decode_message,
    encode_message,
    fingerprint,
    with_ids,
    with_parents,
)

_anonymous = messages().map(lambda message: replace(message, id="", parent=None))
_histories = st.lists(st.one_of(_anonymous, st.just(Message(role="user", parts=(Text(text="ok"),)))), max_size=8)


def _ids(found: list[Message]) -> list[str]:
    return [message.id for message in found]


@given(_histories)
def test_the_same_conversation_read_twice_gets_the_same_distinct_ids(history: list[Message]) -> None:
    first = _ids(with_ids(history, session="s"))
    assert first == _ids(with_ids(history, session="s"))
    assert len(set(first)) == len(history)
    assert all(len(given_id) == 26 for given_id in first)


@given(_histories, _histories)
def test_what_is_appended_changes_no_earlier_id(history: list[Message], later: list[Message]) -> None:
    longer = with_ids(history + later, session="s")
    assert longer[: len(history)] == with_ids(history, session="s")


@given(_histories, _histories)
def test_a_conversation_read_in_batches_gets_the_ids_of_one_read_whole(
    history: list[Message], later: list[Message]
) -> None:
    stored = with_parents(with_ids(history, session="s"))
    batch = with_ids(later, session="s", counts=count_fingerprints(stored))
    assert _ids(stored) + _ids(batch) == _ids(with_ids(history + later, session="s"))


@given(_histories)
def test_messages_that_went_through_a_transcript_keep_their_ids(history: list[Message]) -> None:
    reread = [replace(decode_message(encode_message(message)), id="") for message in with_ids(history, session="s")]
    assert _ids(with_ids(reread, session="s")) == _ids(with_ids(history, session="s"))


@pytest.mark.req("AS-TRANS-01")
def test_ids_differ_by_session_role_name_time_and_content() -> None:
    base = Message(role="user", parts=(Text(text="ok"),))
    variants = [
        base,
        replace(base, role="assistant"),
        replace(base, name="ann"),
        replace(base, name=""),
        replace(base, parts=(Text(text="ok."),)),
        replace(base, parts=(Text(text="o"), Text(text="k"))),
    ]
    ids = [with_ids([message], session="s")[0].id for message in variants]
    assert len({*ids, with_ids([base], session="t")[0].id}) == len(variants) + 1


def test_an_id_that_is_there_stays_and_counts_as_an_earlier_equal_message() -> None:
    plain = Message(role="user", parts=(Text(text="ok"),))
    mine, second = with_ids([replace(plain, id="mine"), plain], session="s")
    assert mine.id == "mine"
    assert second.id == with_ids([plain, plain], session="s")[1].id


def test_usage_and_metadata_do_not_change_what_a_message_says() -> None:
    plain = Message(role="user", parts=(Text(text="ok"),))
    assert fingerprint(plain) == fingerprint(replace(plain, id="x", parent="y", metadata={"a": 1}))


@pytest.mark.req("AS-TRANS-01")
def test_the_id_of_a_message_is_the_same_in_every_version() -> None:
    (message,) = with_ids([Message(role="user", parts=(Text(text="hello"),))], session="s1")
    assert message.id == "5nc9991a30qdmysgyhevms2nm6"


def test_each_message_follows_the_one_before_it() -> None:
    history = [Message(role="user", id="a"), Message(role="user", id="b", parent="x"), Message(role="user", id="c")]
    assert [message.parent for message in with_parents(history)] == [None, "x", "b"]
    assert [message.parent for message in with_parents(history, after="z")] == ["z", "x", "b"]


def test_nothing_follows_a_message_without_an_id() -> None:
    assert [m.parent for m in with_parents([Message(role="user"), Message(role="user")], after="z")] == ["z", None]
