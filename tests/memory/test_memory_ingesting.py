"""Taking in a conversation: what is given again is not doubled, and nobody waits for a model or hears its errors."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_at_work import SCOPE, said, settings
from command_line import ricordo
from ricordo import FlushConfig, Memory
from ricordo.errors import InvalidSetting
from ricordo.extraction.preprocessing import strip_fences
from ricordo.guard import parse_fence
from ricordo.messages import Message, Text
from ricordo.messages.codec import find_overlap
from ricordo.testing import Fail, Hang, LoopbackServer, Say, ScriptedModel

pytestmark = pytest.mark.anyio


def talk(*texts: str) -> list[Message]:
    """Return a conversation without ids: the user and the assistant in turn."""
    roles = ("user", "assistant")
    return [Message(role=roles[at % 2], parts=(Text(text=text),)) for at, text in enumerate(texts)]  # type: ignore[arg-type]


CONVERSATION = talk("We deploy from main.", "ok", "And only on Mondays.", "ok", "ok", "ok", "Thanks.", "ok")


async def held(memory: Memory) -> list[str]:
    return [message.text for message in (await memory.session("s")).messages]


@pytest.mark.req("AS-BUG-log-duplicates", "AS-TRANS-01")
async def test_a_conversation_that_is_given_whole_each_time_is_never_doubled(tmp_path: Path) -> None:
    root = tmp_path / ".ricordo"
    lengths, added, ids = (1, 2, 2, 5, 5, len(CONVERSATION), len(CONVERSATION)), list[int](), list[list[str]]()
    for part in (lengths[:3], lengths[3:]):
        async with Memory.open(root, scope=SCOPE) as memory:
            for length in part:
                taken = await memory.ingest(CONVERSATION[:length], session="s")
                added.append(taken.added_count)
                ids.append([message.id for message in taken.messages])
                assert await held(memory) == [message.text for message in CONVERSATION[:length]]
    assert added == [1, 1, 0, 3, 0, 3, 0]
    assert all(each == ids[-1][: len(each)] for each in ids)


@pytest.mark.req("AS-TRANS-01")
async def test_the_end_of_a_conversation_with_what_follows_adds_only_what_follows(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        await memory.ingest(CONVERSATION[:6], session="s")
        assert (await memory.ingest(CONVERSATION[2:], session="s")).added_count == 2
        assert (await memory.ingest(CONVERSATION[1:4], session="s")).added_count == 0
        assert await held(memory) == [message.text for message in CONVERSATION]


async def test_what_is_said_again_is_added_when_it_comes_turn_by_turn(tmp_path: Path) -> None:
    turns = [("Hello.", "ok"), ("Next.", "ok"), ("Go on.", "ok"), ("Hello.", "Again?")]
    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE) as memory:
        for turn in turns:
            assert (await memory.ingest(talk(*turn), session="s")).added_count == 2
        assert (await memory.ingest([said("ok")], session="s")).added_count == 1
        assert (await memory.ingest([said("ok")], session="s")).added_count == 1
        assert await held(memory) == [text for turn in turns for text in turn] + ["ok", "ok"]


@given(st.lists(st.sampled_from("ab"), max_size=8), st.lists(st.sampled_from("ab"), max_size=8))
def test_what_was_given_again_stands_in_what_is_held_and_is_as_much_as_there_is(
    held: list[str], new: list[str]
) -> None:
    found = find_overlap(held, new)
    assert [held[at] for at in found] == new[: len(found)]
    ends = [count for count in range(len(new) + 1) if count and held[-count:] == new[:count]]
    inside = any(held[at : at + len(new)] == new for at in range(len(held))) and len(new) > 1
    least = max([count for count in ends if count > 1 or count == len(held)], default=0)
    assert len(found) == max(least, len(new) if inside else 0)


async def test_a_model_that_fails_or_hangs_is_neither_waited_for_nor_heard_of_by_who_ingests(tmp_path: Path) -> None:
    for name, item in (("fails", Fail(429, "Too many.")), ("hangs", Hang())):
        root = tmp_path / name
        with LoopbackServer([item, *[Say("NO_REPLY")] * 9]) as server:
            config = FlushConfig(model="openai-chat:small", base_url=server.url + "/v1", closing_seconds=0.0)
            given = replace(settings(root), flush=config)
            async with Memory.open(root, scope=SCOPE, settings=given) as memory:
                taken = await memory.ingest(CONVERSATION, session="s")
                assert (taken.added_count, taken.entries, taken.is_queued) == (len(CONVERSATION), (), True)
                assert await memory.drain(seconds=0) == 1


async def test_what_a_model_learns_of_a_conversation_is_there_when_it_was_waited_for(tmp_path: Path) -> None:
    lesson = {
        "content": "The team deploys only from main.", "kind": "convention", "confidence": 0.9,
        "quote": "We deploy from main.", "message": "", "since": None, "until": None, "tags": [], "corrects": False,
    }  # fmt: skip
    model = ScriptedModel([Say(json.dumps({"lessons": [lesson]}))])
    root = tmp_path / ".ricordo"
    given = replace(settings(root), flush=FlushConfig(model=model))
    async with Memory.open(root, scope=SCOPE, settings=given) as memory:
        assert (await memory.ingest(CONVERSATION, session="s")).is_queued
        assert await memory.drain() == 0
        assert [entry.content for entry in await memory.entries()] == ["The team deploys only from main."]
        for wrong in (-1, float("nan"), True, "soon"):
            with pytest.raises(InvalidSetting, match="seconds"):
                await memory.drain(seconds=wrong)  # type: ignore[arg-type]


@pytest.mark.req("DF-C8", "DF-C9", "DF-B12")
@pytest.mark.parametrize(
    ("thanks", "question"),
    [
        ("ok", "Shall we always deploy from main?"),
        ("Thanks!", "Shall we always deploy from main?"),
        ("好的，谢谢。", "我们以后都从 main 分支部署吗。"),
        ("Alles klar, danke!", "Sollen wir immer von main ausliefern?"),
        ("D'accord, merci !", "Faut-il toujours déployer depuis main ?"),
        ("¡Vale, gracias!", "¿Desplegamos siempre desde main?"),
        ("Va bene, grazie.", "Pubblichiamo sempre da main?"),
        ("Beleza, obrigado!", "Publicamos sempre a partir do main?"),
        ("わかりました、ありがとうございます。", "いつもmainからデプロイしますか。"),
        ("네, 감사합니다", "항상 main에서 배포할까요."),
        ("Спасибо, понятно", "Всегда выпускаем из main?"),
        ("شكراً", "هل ننشر دائما من main؟"),
    ],
)  # fmt: skip
async def test_an_acknowledgement_is_read_as_an_answer_only_and_a_model_is_asked_about_two_sides_only(
    tmp_path: Path, thanks: str, question: str
) -> None:
    model = ScriptedModel([Say("NO_REPLY")] * 2)
    given = replace(settings(tmp_path / ".ricordo"), flush=FlushConfig(model=model))
    told, reply, fact = "Tests lie in tests/unit.", "Glad to help with the fixtures.", "We use tabs of width three."

    async def read(session: str, *texts: str) -> list[str] | None:
        """Return which messages a model is asked about; None if nothing is queued and it is not asked."""
        before = len(model.requests)
        report = await memory.ingest(talk(*texts), session=session)
        assert await memory.drain() == 0
        assert report.is_queued == (len(model.requests) > before)
        if not report.is_queued:
            return None
        blocks = strip_fences(model.requests[-1].messages[-1].text)[1]
        (conversation,) = [block for block in blocks if block.startswith("<conversation")]
        return list(parse_fence(conversation) or ())

    async with Memory.open(tmp_path / ".ricordo", scope=SCOPE, settings=given) as memory:
        assert await read("thanks", thanks, reply) is None
        assert await read("agent-alone", "", told, thanks, reply) is None
        assert await read("person-alone", fact) is None
        assert [entry.content for entry in await memory.entries()] == [fact], "rules learn what one side says"
        asked, more = "Where do the tests lie?", "Good to know that."
        assert await read("idle", asked, told, thanks, reply, more) == [asked, told, more]
        questioned = f"{told} {question}"
        assert await read("answer", asked, questioned, thanks, reply) == [asked, questioned, thanks, reply]


@pytest.mark.may_block("the command line is run inside of the test")
def test_the_command_says_that_a_model_learns_from_what_it_took_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-a-test")
    monkeypatch.setenv("RICORDO_FLUSH__MODEL", "openai-chat:small")
    Path("chat.json").write_text(
        json.dumps([{"role": "user", "content": "We deploy from main."}, {"role": "assistant", "content": "Noted."}]),
        encoding="utf-8",
    )
    with LoopbackServer([Say("NO_REPLY")]) as server:
        monkeypatch.setenv("RICORDO_FLUSH__BASE_URL", server.url + "/v1")
        done = ricordo("import", "chat.json")
        assert len(server.requests) == 1
    assert (done.code, done.err) == (0, "")
    assert "A model learns from it in the background" in done.out
    assert ricordo("import", "chat.json", "--json").document["waiting"] == 0
