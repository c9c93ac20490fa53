"""What came from outside is no answer: what a tool printed, and what an assistant only repeats of it."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from agents_at_work import SCOPE, said
from command_line import ricordo
from places import place_of
from ricordo import HarnessAgent, Memory, MemoryConfig
from ricordo.agent import tool
from ricordo.messages import Message, Text, ToolCall, ToolResult
from ricordo.search.answer import NOT_IN_MEMORY
from ricordo.search.contract import Answer
from ricordo.testing import Call, Calls, Say, ScriptedModel

pytestmark = pytest.mark.anyio

PLANTED = "Production deployments of the billing service always go out from the branch release-blue."
ASKED = "From which branch do production deployments of the billing service go out?"
DECIDED = "Production deployments of the billing service go out from the branch main only."


def page(text: str = PLANTED, *, name: str | None = None, role: str = "tool") -> list[Message]:
    """Return how a page is read: the call, and what the tool prints."""
    call = ToolCall(id="call_1", name="fetch", arguments='{"url": "https://example.org/wiki"}')
    result = ToolResult(call_id="call_1", name="fetch", parts=(Text(text=f"<h1>Wiki</h1>\n{text}\n<p>End.</p>"),))
    return [
        Message(role="assistant", parts=(call,)),
        Message(role="user" if role == "user" else "tool", name=name, parts=(result,)),
    ]


def replied(text: str) -> Message:
    return Message(role="assistant", parts=(Text(text=text),))


READ = said("Read the wiki, please.")


@pytest.mark.parametrize(
    "messages",
    [
        [READ, *page(), replied("Done.")],
        [READ, *page(name="web"), replied("Done.")],
        [READ, *page(role="user"), replied("Done.")],
        [READ, *page(), replied(f"I have read it. {PLANTED} Shall I go on?")],
        [
            READ,
            *page(),
            replied("The wiki says: production deployments of billing always go from branch release-blue."),
        ],
    ],
    ids=["printed", "printed under a name", "in a message of the user's role", "repeated", "retold"],
)
async def test_what_a_page_says_is_no_answer_whoever_repeats_it(tmp_path: Path, messages: Sequence[Message]) -> None:
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        await memory.ingest(messages, session="s")
        found = await memory.answer(ASKED)
        assert (found.found, found.text, found.hit) == (False, NOT_IN_MEMORY, None)
        assert "release-blue" not in found.text + "".join(hit.entry.content for hit in found.others)
        assert [hit.path for hit in found.unconfirmed] != []
        assert "release-blue" in found.unconfirmed[0].entry.content


async def test_what_a_user_decided_is_quoted_and_recalled_above_a_page_that_was_repeated_later(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        await memory.ingest([said(f"We decided: {DECIDED}"), replied("Noted.")], session="first")
        await memory.ingest(
            [READ, *page(f"We decided: {PLANTED}"), replied(f"We decided: {PLANTED} It is no longer main.")],
            session="second",
        )
        assert {entry.trust.value for entry in await memory.entries()} == {"agent", "external"}
        found = await memory.answer(ASKED)
        assert found.hit is not None
        assert "branch main only" in found.hit.entry.content
        assert "release-blue" not in found.text
        recalled = await memory.recall("production deployments billing branch")
        assert "branch main only" in recalled[0].entry.content
        assert "later statement" not in recalled[0].explanation


async def test_what_a_user_said_is_an_answer_also_when_a_tool_prints_the_same(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        await memory.ingest([said(DECIDED), *page(DECIDED), replied(f"As you said: {DECIDED}")], session="s")
        assert (await memory.answer(ASKED)).found


async def test_what_was_learned_from_a_repeated_page_becomes_an_answer_once_it_is_confirmed(
    tmp_path: Path,
) -> None:
    stated = "The root cause was that the staging database of the billing service listens on port 5433."
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        taken = await memory.ingest(
            [said("On which port does the staging database listen?"), *page(stated), replied(stated)], session="s"
        )
        asked = "On which port does the staging database of the billing service listen?"
        assert not (await memory.answer(asked)).found
        assert [entry.trust.value for entry in taken.entries] == ["external"]
        await memory.confirm(taken.entries[0].id)
        assert (await memory.answer(asked)).found


# what a user says, what a tool prints then, what the assistant makes of that, and a question; written before the rule
RETOLD = (
    (
        "Read the wiki, please.",
        "Production deployments of the billing service always go out from the branch release-blue.",
        "According to the page, billing is shipped from release-blue.",
        "From which branch is billing shipped?",
    ),
    (
        "What does the handbook say?",
        "The office closes at noon on Fridays during the summer months.",
        "On Fridays in summer the office shuts at noon.",
        "When does the office shut on Fridays?",
    ),
    (
        "Look at the ticket.",
        "Ticket 4711: customers in Norway are exempt from the import fee since 3 March.",
        "Norwegian customers pay no import fee, exempt since March 3.",
        "Who is exempt from the import fee?",
    ),
    (
        "Check the README.",
        "To restart the cache run `flushctl --hard node7` as the operator account.",
        "You restart the cache with flushctl --hard node7, using the operator account.",
        "How do I restart the cache?",
    ),
    (
        "Fetch the page.",
        "The support hotline can be reached under 0800 555 1234 around the clock.",
        "Support is reachable at 0800 555 1234 at any hour.",
        "How is support reachable?",
    ),
    (
        "Summarise the minutes.",
        "Minutes: Paula takes over the warehouse migration from Jens in October.",
        "Paula will be responsible for migrating the warehouse from October, instead of Jens.",
        "Who is responsible for migrating the warehouse?",
    ),
    (
        "Show me the config.",
        "retention_days = 45\nbackup_region = eu-north-1\n",
        "Backups go to the region eu-north-1 and are retained for 45 days.",
        "To which region do backups go?",
    ),
    (
        "Read the mail.",
        "Please send all invoices to accounts@harbour.example from now on, says the finance team.",
        "Finance wants invoices sent to accounts@harbour.example.",
        "Where does finance want invoices sent?",
    ),
    (
        "Lies die Seite.",
        "Der Hafen von Triest ist am Sonntag wegen der Regatta fuer Frachter gesperrt.",
        "Laut Seite ist Triest sonntags wegen der Regatta fuer Frachter gesperrt.",
        "Wann ist Triest fuer Frachter gesperrt?",
    ),
    (
        "Open the policy.",
        "Employees may carry over at most five vacation days into the next year.",
        "The policy allows carrying over five vacation days at most.",
        "How many vacation days can be carried over?",
    ),
    (
        "Where may dogs go?",
        "Guests can bring dogs into the garden area but not inside.",
        "Dogs are welcome in the garden only.",
        "Where are dogs welcome?",
    ),
    (
        "Read the note.",
        "The passphrase hint is the founder's hometown, Lugano.",
        "Lugano is the hometown of the founder, and so it is the hint.",
        "What is the hometown of the founder?",
    ),
    (
        "What does version 4 need?",
        "Version 4 drops support for Windows 7; upgrade to Windows 10 first.",
        "You need Windows 10 for version 4.",
        "What do I need for version 4?",
    ),
    (
        "When is our standup?",
        "Our standup moved: it now happens at 09:45 instead of 10:15.",
        "The standup is at 09:45 these days.",
        "When is the standup these days?",
    ),
    (
        "How long does the valve take?",
        "Lead time of the valve, article 88-C, is fourteen weeks.",
        "Expect fourteen weeks for the valve 88-C.",
        "How many weeks should I expect for the valve?",
    ),
    (
        "Who has the key of the vault?",
        "The vault key is kept by Ines. She sits in room 214, next to the lift.",
        "Ines in room 214 has the vault key.",
        "Who has the vault key?",
    ),
    (
        "Who migrates the warehouse?",
        "Paula takes over the warehouse migration from Jens in October.",
        "Paula is the one who migrates the warehouse.",
        "Who migrates the warehouse?",
    ),
    (
        "Read the contract.",
        "Either party may terminate this agreement with ninety days of written notice.",
        "The agreement can be ended by both parties, ninety days ahead and in writing.",
        "How many days ahead can the agreement be ended?",
    ),
)
# the same for what the assistant says of its own or of what the user said, and a word of the answer
ITS_OWN = (
    (
        "We deploy billing from the branch main only.",
        "main\nrelease-blue\n",
        "Understood: billing is deployed from main only.",
        "From which branch is billing deployed?",
        "main",
    ),
    (
        "The harbour office closes at five on Fridays.",
        "office.md  harbour.md  fridays.txt",
        "Noted, on Fridays the harbour office closes at five.",
        "When does the harbour office close on Fridays?",
        "five",
    ),
    (
        "Where do fixtures live?",
        "conftest.py\nsrc\ntests\n",
        "I suggest to keep all fixtures in a folder of their own, shared by every suite.",
        "Where should fixtures be kept?",
        "folder of their own",
    ),
    (
        "Paula takes over the warehouse migration in October.",
        '{"status": "ok", "id": 17}',
        "Paula takes over the warehouse migration in October; I created the ticket.",
        "Who takes over the warehouse migration?",
        "Paula",
    ),
    (
        "Remember that the retro is on Thursdays.",
        "saved",
        "The retro is on Thursdays.",
        "When is the retro?",
        "Thursdays",
    ),
    (
        "Which database should we choose?",
        "postgres 15.2\nredis 7.0\n",
        "I recommend a single relational database with nightly dumps, because your data is small.",
        "Which database was recommended?",
        "relational",
    ),
    (
        "My sister Lena lives in Trieste.",
        "weather: 21 degrees, sunny",
        "Nice that Lena, your sister, lives in Trieste.",
        "Where does Lena live?",
        "Trieste",
    ),
    (
        "Our support number is 0800 555 1234.",
        "<p>Support: 0800 555 1234</p>",
        "Your support number 0800 555 1234 is on the page as you said.",
        "What is the support number?",
        "0800 555 1234",
    ),
    (
        "Let us use port 8443 for staging.",
        "listening on 0.0.0.0:8443",
        "Staging uses port 8443 now.",
        "Which port does staging use?",
        "8443",
    ),
    (
        "What about the retries of the importer?",
        "ok",
        "I would let the importer retry three times with a pause of two seconds.",
        "How many times should the importer retry?",
        "three",
    ),
    (
        "We chose Elba for the offsite. Check the weather there.",
        "Elba: 24 degrees, sunny, wind from the south",
        "Elba is your choice for the offsite.",
        "What is the choice for the offsite?",
        "Elba",
    ),
    (
        "Explain the plan for the cache.",
        "cache.py\nplan.md\n",
        "The plan is to warm the cache at night, so that the first requests in the morning are quick.",
        "When is the cache warmed?",
        "night",
    ),
)


async def _asked(root: Path, user: str, printed: str, reply: str, question: str) -> Answer:
    async with Memory.open(root, scope=SCOPE) as memory:
        await memory.ingest([said(user), *page(printed), replied(reply)], session="s")
        return await memory.answer(question)


@pytest.mark.parametrize("case", RETOLD, ids=lambda case: case[3])
async def test_what_an_assistant_tells_of_a_page_in_other_words_is_no_answer(
    case: tuple[str, str, str, str], tmp_path: Path
) -> None:
    found = await _asked(tmp_path / ".ricordo", *case)
    assert not found.found, found.text


async def test_what_an_assistant_says_of_its_own_or_after_a_user_is_an_answer_whatever_tools_printed(
    tmp_path: Path,
) -> None:
    missed = []
    for number, (*case, word) in enumerate(ITS_OWN):
        found = await _asked(tmp_path / str(number) / ".ricordo", *case)
        missed += [] if found.found and word in found.text else [case[3]]
    # one comes too little near to the question, with and without the rule
    assert len(missed) <= 1, missed


@pytest.mark.parametrize("path", ["sessions/2026-11-22-08h00.md", "memories/billing.md", "plans/billing.md"])
async def test_what_a_file_of_the_agent_tells_of_a_page_is_no_answer_and_the_rest_of_it_is(
    path: str, tmp_path: Path
) -> None:
    told = "The wiki says that billing is deployed to production from release-blue."
    own = "The importer retries three times with a pause of two seconds."
    file = place_of(tmp_path / ".ricordo", SCOPE.user or "") / "workspace" / path
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        await memory.ingest([READ, *page(), replied("Done.")], session="s")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\nsession: s\n---\n# Billing\n\n## Summary\n\n{told}\n\n{own}\n", encoding="utf-8")
        assert not (await memory.answer("From where is billing deployed to production?")).found
        assert (await memory.answer("How many times does the importer retry?")).found


@tool(effect="reads")
def fetch() -> str:
    """Read the wiki."""
    return PLANTED


async def test_what_an_agent_saved_of_a_page_is_no_answer_and_no_reply_of_an_agent_without_a_model(
    tmp_path: Path,
) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel(
        [Calls(Call("fetch", {})), Calls(Call("remember", {"content": PLANTED, "kind": "decision"})), Say("Done.")]
    )
    async with HarnessAgent(model, memory=MemoryConfig(root=root, hooks=False), scope=SCOPE, tools=[fetch]) as agent:
        await agent.send("Read the wiki and keep what matters.")
    async with Memory.open(root, scope=SCOPE) as memory:
        assert any(entry.content == PLANTED for entry in await memory.entries())
        assert not (await memory.answer(ASKED)).found
    async with HarnessAgent("offline", memory=root, scope=SCOPE) as agent:
        assert "release-blue" not in str(await agent.send(ASKED))


async def test_what_an_agent_saved_because_a_user_said_it_is_an_answer(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    model = ScriptedModel([Calls(Call("remember", {"content": DECIDED, "kind": "decision"})), Say("Done.")])
    async with HarnessAgent(model, memory=MemoryConfig(root=root, hooks=False), scope=SCOPE) as agent:
        await agent.send(f"Remember this. {DECIDED}")
    async with Memory.open(root, scope=SCOPE) as memory:
        assert (await memory.answer(ASKED)).found


@pytest.mark.may_block("the command line is run inside of the test")
def test_the_command_says_that_it_is_not_in_memory_and_points_to_the_place_outside() -> None:
    lines: list[dict[str, object]] = [{"role": "user", "content": "Read the wiki."}]
    lines += [{"role": "assistant", "content": "", "tool_calls": [_call()]}]
    lines += [{"role": "tool", "tool_call_id": "call_1", "content": PLANTED}, {"role": "assistant", "content": "Done."}]
    Path("chat.json").write_text(json.dumps(lines), encoding="utf-8")
    assert ricordo("import", "chat.json").code == 0
    told = ricordo("ask", "-v", ASKED).out
    assert told.startswith("not in memory\nUnconfirmed, from outside: ")
    assert "release-blue" not in told
    document = ricordo("ask", ASKED, "--json").document
    assert (document["found"], document["hit"]) == (False, None)
    assert [hit["trust"] for hit in document["unconfirmed"]] == ["external"]


def _call() -> dict[str, object]:
    return {"id": "call_1", "type": "function", "function": {"name": "fetch", "arguments": "{}"}}
