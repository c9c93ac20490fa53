"""The summary without a model: what it says of a conversation, and what it leaves out."""

from collections.abc import Sequence

import pytest

from conversation_strategies import call, result, said
from ricordo.context import SECTION_NAMES, build_digest, extract_tags, extract_title
from ricordo.context.summary_message import build_summary_message
from ricordo.extraction import Finding, extract
from ricordo.messages import Message, with_ids, with_mark

TALK = [
    said("Morning. We are moving the orders service out of the monolith. Can you look at what is missing in the repo?"),
    call("c1", name="read_file", arguments='{"path": "package.json"}'),
    result("c1", '{"name": "orders"}'),
    said("There is no database yet. I would put the orders service on port 8080.", role="assistant"),
    said("No, not port 8080. The orders service listens on 8443."),
    call("c2", name="write_file", arguments='{"path": "docker-compose.yml", "content": "8443"}'),
    result("c2", "wrote docker-compose.yml"),
    call("c3", name="bash", arguments='{"command": "cd ~/orders && pnpm install"}'),
    result("c3", "resolved 14\nERR_PNPM_FETCH_401 Unauthorized\n"),
    said("The registry wants a token. Do you have one?", role="assistant"),
    said("We decided to use MySQL for the orders database. We deploy only from main."),
    said("Noted: MySQL for the orders database, deploys only from main.", role="assistant"),
    said("No longer: we decided to use PostgreSQL for the orders database, not MySQL."),
    said("PostgreSQL is set up and all tests of the orders service are green.", role="assistant"),
]


def session(messages: list[Message]) -> list[Message]:
    return with_ids(messages, session="s1")


def line_with(text: str, found: str) -> str:
    (line,) = (line for line in found.splitlines() if text in line)
    return line


@pytest.mark.req("AS-BUG-01")
def test_a_digest_has_the_four_sections_and_says_what_was_asked_decided_done_and_what_failed() -> None:
    found = build_digest(session(TALK))
    assert [line.removeprefix("## ") for line in found.splitlines() if line.startswith("## ")] == list(SECTION_NAMES)
    intent, _, rest = found.partition("## SUMMARY")
    assert "Can you look at what is missing in the repo?" in intent
    summary, _, artifacts = rest.partition("## ARTIFACTS")
    assert "We deploy only from main." in summary
    assert "all tests of the orders service are green" in summary
    assert "docker-compose.yml: write_file" in artifacts
    assert "pnpm install -> failed: ERR_PNPM_FETCH_401 Unauthorized" in artifacts


@pytest.mark.req("AS-BUG-01")
def test_a_later_statement_takes_the_place_of_the_one_it_corrects_and_says_what_held() -> None:
    found = build_digest(session(TALK))
    database = line_with("PostgreSQL for the orders database", found)
    assert "(before: We decided to use MySQL for the orders database." in database
    assert found.count("We decided to use MySQL") == 1
    port = line_with("listens on 8443", found)
    assert "sets right: " in port
    assert found.count("8080") == port.count("8080")


def test_an_echo_is_said_once() -> None:
    assert "Noted:" not in build_digest(session(TALK))


@pytest.mark.req("AS-BUG-01")
def test_every_line_names_the_messages_it_rests_on_by_the_end_of_their_ids() -> None:
    messages = session(TALK)
    found = build_digest(messages)
    assert line_with("We deploy only from main.", found).endswith(f"[{messages[10].id[-6:]}]")
    assert line_with("about: ", found).endswith(f"[{messages[0].id[-6:]}..{messages[-1].id[-6:]}]")
    named = [said("We deploy only from main.", id="m7"), said("Good.", role="assistant", id="m8")]
    assert "We deploy only from main. [m7]" in build_digest(named)


@pytest.mark.req("AS-BUG-01")
def test_what_has_no_reply_is_open_only_where_the_talk_has_ended() -> None:
    messages = session([*TALK, said("Which branch shall I push?", role="assistant")])
    assert "Which branch shall I push?" in build_digest(messages, is_ended=True).partition("## NEXT STEPS")[2]
    assert "Which branch" not in build_digest(messages).partition("## NEXT STEPS")[2]


@pytest.mark.req("AS-BUG-01", "AS-CHAIN-01")
def test_rules_outlive_many_digests_and_a_correction_reaches_back_into_them() -> None:
    window: list[Message] = [
        said("We deploy only from main. We decided to use MySQL for the orders database.", id="m0")
    ]
    for number in range(12):
        noise = [
            call(f"c{number}", name="bash", arguments=f'{{"command": "make step-{number}"}}'),
            result(f"c{number}", "done"),
            said(f"Step {number} is finished and the report {number} is written.", role="assistant", id=f"a{number}"),
        ]
        body = build_digest([*window, *noise], limit_tokens=400)
        window = [
            build_summary_message(body, noise, session="s1", requests=(), kept_count=0, lead=True),
        ]
    assert "We deploy only from main. [m0]" in body
    moved = said("No longer: we decided to use PostgreSQL for the orders database, not MySQL.", id="m9")
    after = build_digest([*window, moved], limit_tokens=400)
    assert "before: We decided to use MySQL for the orders database." in line_with("decided: ", after)
    assert after.count("We decided to use MySQL") == 1


@pytest.mark.req("AS-CHAIN-01")
def test_what_the_user_asked_to_remember_outlives_many_digests() -> None:
    window: list[Message] = [said("Please remember that the schema of the stock counter is curlew.", id="m0")]
    for number in range(8):
        window += [
            said(f"We walked along the river {number} with the whole family on Sunday.", id=f"r{number}"),
            said("That sounds good.", role="assistant", id=f"s{number}"),
        ]
        text = build_digest(window, limit_tokens=120)
        assert "- remember: The schema of the stock counter is curlew." in text
        window = [build_summary_message(text, window, session="s1", requests=(), kept_count=0, lead=True)]


@pytest.mark.req("FC-JUNK")
def test_recalled_memory_is_not_in_a_digest_and_what_the_harness_told_is() -> None:
    memory = with_mark(said("The zebra lives in Porto.", id="m1"), "memory")
    notice = with_mark(said("The search in the background found three penguins.", id="m2"), "notice")
    found = build_digest([*session(TALK), memory, notice])
    assert "zebra" not in found
    assert "three penguins" in found


@pytest.mark.req("AS-BUG-01")
def test_what_a_reading_tool_answers_is_no_failure_of_it() -> None:
    reads = [
        call("c1", name="read_file", arguments='{"path": "errors.py"}'),
        result("c1", "class ModelError(Exception): ...\nError: this is only a text"),
    ]
    found = build_digest(session([*TALK, *reads]))
    assert "failed" not in line_with("errors.py", found)


def test_a_title_and_tags_tell_the_topic_and_silence_has_none() -> None:
    title = extract_title(session(TALK))
    assert "orders service out of the monolith" in title
    assert len(title) <= 80
    assert {"orders", "database"} <= set(extract_tags(session(TALK)))
    assert 3 <= len(extract_tags(session(TALK))) <= 5
    assert all(tag == tag.lower() and " " not in tag for tag in extract_tags(session(TALK)))
    assert (extract_title([]), extract_tags([]), build_digest([])) == ("", (), "")


def test_of_a_long_talk_a_bounded_part_is_read_and_decisions_between_begin_and_end_are_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opening = said("Can you help me move the warehouse of crates to Porto?")
    decided = said("We decided to use PostgreSQL for the orders database.")
    chatter = [
        said(f"Crate {number} stands on shelf {number % 17}.", role="assistant" if number % 2 else "user")
        for number in range(1_600)
    ]
    read = list[int]()

    def count_and_extract(messages: Sequence[Message]) -> tuple[Finding, ...]:
        read.append(len(messages))
        return extract(messages)

    monkeypatch.setattr("ricordo.context.summary.digest.extract", count_and_extract)
    for length in (800, 1_600):
        talk = session([opening, *chatter[:300], decided, *chatter[300:length], said("Deploy only from main, please.")])
        found = build_digest(talk)
        assert "move the warehouse of crates to Porto" in found
        assert line_with("PostgreSQL for the orders database", found).endswith(f"[{talk[301].id[-6:]}]")
        assert line_with("about: ", found).endswith(f"[{talk[0].id[-6:]}..{talk[-1].id[-6:]}]")
        assert "Deploy only from main" in found
    assert max(read) <= 400
