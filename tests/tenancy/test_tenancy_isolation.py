"""Three tenants, two teams, nine people, and random acts of all of them: nobody is told anything of another's memory.

Each memory holds a word of its own. Whatever an act tells, also an error, an event or a line of a log, is searched for
these words and for the ids; and what is there for somebody is found and counted by them, so that silence is no proof.
"""

import json
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from command_line import ricordo
from mcp_clients import connect_in_process
from ricordo import HarnessAgent, Memory, Scope
from ricordo.errors import NotFound, RicordoError, ScopeError
from ricordo.messages import Message, Text
from ricordo.search import Query
from ricordo.testing import Call, Say, ScriptedModel

pytestmark = [pytest.mark.req("HE-O-tenancy"), pytest.mark.may_block("the test drives loops of its own")]

TENANTS, USERS = ("acme", "beta", "gamma"), ("ann", "ben", "cleo")
TEAMS = {"acme": {"ann", "ben"}, "beta": {"ben", "cleo"}}
"""Who is in the team of a tenant; both teams have the same name."""
CANARY = re.compile(r"zq\d{6}x")
PEOPLE = [(tenant, user) for tenant in TENANTS for user in USERS]


@dataclass(frozen=True)
class Place:
    """Whose a memory is: a sort of place, and the names of those it is for."""

    sort: str
    tenant: str
    user: str = ""

    def is_for(self, tenant: str, user: str) -> bool:
        is_member = self.sort != "team" or user in TEAMS.get(tenant, ())
        return self.tenant == tenant and self.user in {"", user} and is_member


def place_for(sort: str, tenant: str, user: str) -> Place:
    return Place(sort, tenant, "" if sort in {"project", "team"} else user)


class People(RuleBasedStateMachine):
    """What nine people do, and what each of them is told."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.portal: BlockingPortal = self.stack.enter_context(start_blocking_portal())
        self.memories: dict[tuple[str, str], Memory] = {}
        self.held: dict[str, Place] = {}
        self.ids: dict[str, str] = {}
        self.gone: dict[str, Place] = {}
        self.said: dict[str, Place] = {}
        self.events: dict[tuple[str, str], list[str]] = {person: [] for person in PEOPLE}
        self.logged: list[str] = []

    @initialize()
    def move_in(self) -> None:
        number = len(list(self.folder.iterdir()))
        home = self.folder / str(number)
        # what a user has in all projects lies there
        self.stack.enter_context(pytest.MonkeyPatch.context()).setenv("RICORDO_DATA", str(home / "data"))
        handler = logging.Handler()
        handler.emit = lambda record: self.logged.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger().addHandler(handler)
        self.stack.callback(logging.getLogger().removeHandler, handler)
        self.roots = {tenant: home / tenant / ".ricordo" for tenant in TENANTS}
        for tenant in TENANTS:
            # a root belongs to a tenant from its first use
            scope = Scope(tenant=tenant, project="shop")
            with self.portal.wrap_async_context_manager(Memory.open(self.roots[tenant], scope=scope)):
                pass
        for tenant, members in TEAMS.items():
            first, *others = sorted(members)
            folder = self.roots[tenant].parent / ".ricordo-team"
            options = ("--root", self.roots[tenant], "--user", first)
            assert ricordo("team", "create", "core", folder, *options).code == 0
            for other in others:
                assert ricordo("team", "add", other, *options).code == 0
        for tenant, user in PEOPLE:
            opening = Memory.open(
                self.roots[tenant],
                scope=self.scope(tenant, user),
                on_event=lambda event, person=(tenant, user): self.events[person].append(repr(event)),  # type: ignore[misc]
                embedder="none",
                background=False,
            )
            self.memories[tenant, user] = self.stack.enter_context(self.portal.wrap_async_context_manager(opening))

    def teardown(self) -> None:
        self.stack.close()

    def scope(self, tenant: str, user: str) -> Scope:
        team = "core" if user in TEAMS.get(tenant, ()) else None
        return Scope(tenant=tenant, user=user, project="shop", team=team, session=f"s-{user}")

    def call(self, person: tuple[str, str], act: Callable[[Memory], Awaitable[object]]) -> object:
        """Return what an act of a person returned or raised, after looking at it."""

        async def run() -> object:
            return await act(self.memories[person])

        try:
            told = self.portal.call(run)
        except RicordoError as error:
            told = error
        self.check(person, f"{told!r} {told}")
        return told

    def check(self, person: tuple[str, str], told: str) -> None:
        """Fail if a text tells a person a word or an id of a memory that is not for them."""
        known = self.held | self.gone | self.said
        for word in CANARY.findall(told):
            assert known[word].is_for(*person), (person, word, known[word])
        for entry_id, word in self.ids.items():
            assert known[word].is_for(*person) or entry_id not in told, (person, entry_id)

    def visible(self, person: tuple[str, str]) -> set[str]:
        return {word for word, place in self.held.items() if place.is_for(*person)}

    people = st.sampled_from(PEOPLE)

    @rule(person=people, sort=st.sampled_from(["session", "private", "project", "team", "user"]))
    def save(self, person: tuple[str, str], sort: str) -> None:
        word = f"zq{len(self.held) + len(self.gone) + len(self.said):06}x"
        self.held[word] = place_for(sort, *person)
        text = f"The crate {word} is on a shelf."
        saved = self.call(person, lambda memory: memory.remember(text, scope=sort, reason="r"))  # type: ignore[arg-type]
        if isinstance(saved, Exception):
            assert sort == "team"
            assert person[1] not in TEAMS.get(person[0], ())
            del self.held[word]
        else:
            self.ids[saved.id] = word  # type: ignore[attr-defined]

    @rule(person=people)
    def say(self, person: tuple[str, str]) -> None:
        word = f"zq{len(self.held) + len(self.gone) + len(self.said):06}x"
        self.said[word] = place_for("private", *person)
        message = Message(role="user", parts=(Text(text=f"Where did I put {word}, by the way?"),))
        self.call(person, lambda memory: memory.ingest([message], session=f"t{len(self.said)}"))

    @rule(person=people, number=st.integers(min_value=0, max_value=10**6))
    def look_for(self, person: tuple[str, str], number: int) -> None:
        words = sorted(self.held)
        if not words:
            return
        word = words[number % len(words)]
        found = str(self.call(person, lambda memory: memory.recall(word, limit=50, said=False)))
        assert (word in found) is (word in self.visible(person)), (person, word)
        for act in (
            lambda memory: memory.search(word, limit=50, around=True),
            lambda memory: memory.recall("crate on a shelf", limit=50, around=True),
        ):
            self.call(person, act)

    @rule(
        person=people,
        verb=st.sampled_from(
            ["entries", "preamble", "history", "doctor", "sessions", "background_runs", "review", "preamble_cut"]
        ),
    )
    def read(self, person: tuple[str, str], verb: str) -> None:
        told = self.call(person, lambda memory: getattr(memory, verb)())
        if verb == "entries":
            found = sorted(CANARY.findall(" ".join(entry.content for entry in told)))  # type: ignore[attr-defined]
            assert found == sorted(self.visible(person))

    @rule(person=people)
    def ask(self, person: tuple[str, str]) -> None:
        self.call(person, lambda memory: memory.answer("Which crate is on a shelf?"))
        self.call(person, lambda memory: memory.explain(Query(text="crate"), limit=20, rejected=20))
        self.call(person, lambda memory: memory.profile().show())

    @rule(
        person=people,
        number=st.integers(min_value=0, max_value=10**6),
        verb=st.sampled_from(
            ["entry", "forget", "pin", "confirm", "usage", "versions", "history", "erase", "undo", "diff"]
        ),
    )
    def act_on_any_id(self, person: tuple[str, str], number: int, verb: str) -> None:
        ids = sorted(self.ids)
        if not ids:
            return
        entry_id = ids[number % len(ids)]
        word = self.ids[entry_id]
        place = (self.held | self.gone)[word]
        is_changed = verb in {"forget", "erase", "undo"}
        if place.is_for(*person) and (is_changed or word in self.gone):
            return
        if place.sort == "team" and place.is_for(*person):
            # roles are tested elsewhere
            return
        # the id that was given is in the message of the error, so it says nothing
        held = self.ids.pop(entry_id)
        told = self.call(person, lambda memory: getattr(memory, verb)(entry_id))
        self.ids[entry_id] = held
        assert isinstance(told, NotFound | ScopeError) is not place.is_for(*person), (person, verb, place, told)

    @rule(person=people, number=st.integers(min_value=0, max_value=10**6))
    def forget_own(self, person: tuple[str, str], number: int) -> None:
        own = sorted(name for name, word in self.ids.items() if self.held.get(word) == place_for("private", *person))
        if own:
            entry_id = own[number % len(own)]
            assert not isinstance(self.call(person, lambda memory: memory.forget(entry_id)), Exception)
            self.gone[self.ids[entry_id]] = self.held.pop(self.ids[entry_id])

    @rule(
        person=people,
        number=st.integers(min_value=0, max_value=10**6),
        to=st.sampled_from(["private", "project", "user"]),
    )
    def move_own(self, person: tuple[str, str], number: int, to: str) -> None:
        own = sorted(name for name, word in self.ids.items() if self.held.get(word) == place_for("private", *person))
        if own and to != "private":
            entry_id = own[number % len(own)]
            moved = self.call(person, lambda memory: memory.move(entry_id, to, reason="r"))  # type: ignore[arg-type]
            assert not isinstance(moved, Exception), moved
            self.held[self.ids[entry_id]] = place_for(to, *person)

    @rule(person=people, other=people)
    def open_as_another(self, person: tuple[str, str], other: tuple[str, str]) -> None:
        """A scope that names somebody else's tenant, team or project opens nothing of theirs."""
        scopes = [
            Scope(tenant=f"{other[0]}x", user=person[1], project="shop"),
            Scope(user=person[1], project="shop"),
            Scope(tenant=other[0], user=person[1], project="shop", team="other"),
            Scope(tenant=other[0], user=person[1], project="other"),
        ]
        for scope in scopes:
            with (
                suppress(RicordoError),
                self.portal.wrap_async_context_manager(
                    Memory.open(self.roots[other[0]], scope=scope, embedder="none", background=False)
                ),
            ):
                pytest.fail(f"{scope} opened {other}")
        with (
            suppress(ScopeError),
            self.portal.wrap_async_context_manager(
                Memory.open(
                    self.roots["acme"],
                    scope=Scope(tenant="acme", user="cleo", project="shop", team="core"),
                    background=False,
                )
            ),
        ):
            pytest.fail("cleo is no member")

    @rule(person=people, command=st.sampled_from(["recall", "list", "history", "doctor", "export"]))
    def run_a_command(self, person: tuple[str, str], command: str) -> None:
        words = {
            "recall": ["recall", "crate on a shelf", "--limit", "50"],
            "list": ["memory", "list", "--limit", "500"],
            "history": ["history", "--limit", "200"],
            "doctor": ["doctor"],
            "export": ["profile", "export"],
        }[command]
        done = ricordo(*words, "--json", "--root", self.roots[person[0]], "--user", person[1])
        self.check(person, done.out + done.err)
        if command == "list":
            document = json.loads(done.out)
            outside = {word for word in self.visible(person) if self.held[word].sort == "session"}
            assert document["total"] == len(self.visible(person) - outside)

    @rule(person=people, other=people)
    def let_an_agent_look(self, person: tuple[str, str], other: tuple[str, str]) -> None:
        """Whatever ids a model supplies, its tools work for the person that it works for."""
        calls = [
            Call("recall", {"query": "crate on a shelf", "limit": 20}),
            Call("recall", {"query": "crate", "user": other[1], "tenant": other[0], "scope": "project"}),
            Call("memory_search", {"query": "crate", "limit": 20}),
        ]
        model = ScriptedModel([*calls, Say("Done.")])
        agent = HarnessAgent(model, memory=self.roots[person[0]], scope=self.scope(*person))

        async def run() -> None:
            async with agent:
                await agent.send("Look for the crates.")

        self.portal.call(run)
        self.check(person, "".join(repr(request.messages) for request in model.requests))

    @rule(person=people)
    def ask_over_mcp(self, person: tuple[str, str]) -> None:
        async def run() -> list[object]:
            async with connect_in_process(self.roots[person[0]], self.scope(*person)) as client:
                return [
                    await client.call_tool("recall", {"query": "crate on a shelf"}),
                    await client.call_tool("list_memories", {}),
                    await client.list_resources(),
                ]

        self.check(person, repr(self.portal.call(run)))

    @invariant()
    def nothing_is_told_beside(self) -> None:
        for person, told in self.events.items():
            assert CANARY.findall("".join(told)) == []
            self.check(person, "".join(told))
            told.clear()
        assert CANARY.findall("".join(self.logged)) == []
        assert [name for name in self.ids if name in "".join(self.logged)] == []


# a failure is told as it was found: to shorten it would take minutes
_ACTS = settings(deadline=None, suppress_health_check=[*HealthCheck], phases=[Phase.generate], database=None)


@pytest.fixture
def people(tmp_path: Path) -> type[People]:
    People.folder = tmp_path / "homes"
    People.folder.mkdir()
    return People


def test_nobody_is_told_anything_of_another_ones_memory(people: type[People]) -> None:
    few = settings(_ACTS, max_examples=3, stateful_step_count=120)
    run_state_machine_as_test(people, settings=few)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_nobody_is_told_anything_in_a_great_many_acts(people: type[People]) -> None:
    many = settings(_ACTS, max_examples=100, stateful_step_count=1_000)
    run_state_machine_as_test(people, settings=many)
