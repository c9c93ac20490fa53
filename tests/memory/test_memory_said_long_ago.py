"""What was said months ago and taken in today is of the day on which it was said, wherever time decides."""

import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from agents_at_work import SCOPE, settings
from command_line import chat, ricordo
from hand_clock import HandClock
from places import place_of
from ricordo import HarnessAgent, Memory, Message
from ricordo.messages import Text
from ricordo.search import MEMORY_DOCUMENT_TYPES, Query
from ricordo.testing import ScriptedModel

pytestmark = pytest.mark.anyio

Opened = Callable[..., AbstractAsyncContextManager[Memory]]
SAID = datetime(2026, 4, 2, 9, tzinfo=UTC)
BEFORE, AFTER = SAID - timedelta(days=1), SAID + timedelta(days=1)


async def test_a_time_range_and_a_look_back_go_by_when_it_was_said(opened: Opened) -> None:
    clock = HandClock()
    async with opened(clock=clock) as memory:
        await memory.ingest([Message(role="user", parts=(Text(text="Nadia owns staging."),), time=SAID)], session="s")
        await memory.remember("Paul owns billing.")
        for when, found in (({"since": BEFORE, "until": AFTER}, ["Nadia owns staging."]),
                            ({"since": AFTER}, ["Paul owns billing."]), ({"until": BEFORE}, [])):  # fmt: skip
            assert [hit.entry.content for hit in await memory.recall("who owns", **when)] == found  # type: ignore[arg-type]
            assert [hit.entry.content for hit in await memory.recall("", **when)] == found  # type: ignore[arg-type]
            asked = Query(text="owns", document_types=MEMORY_DOCUMENT_TYPES, **when)  # type: ignore[arg-type]
            assert [hit.entry.content for hit in await memory.search(asked)] == found
        assert [entry.content for entry in await memory.entries(as_of=AFTER)] == ["Nadia owns staging."]
        assert await memory.entries(as_of=BEFORE) == []
        assert len(await memory.entries(as_of=clock.now() + timedelta(seconds=1))) == 2


def test_the_commands_go_by_when_it_was_said(tmp_path: Path) -> None:
    ricordo("import", chat(tmp_path / "old.jsonl", (("user", "Nadia owns staging."), ("assistant", "Noted."))))
    ricordo("remember", "Paul owns billing.")

    def listed(*options: str) -> list[str]:
        entries = ricordo("memory", "list", *options, "--json").document["entries"]
        return [entry["content"] for entry in entries]

    assert listed("--as-of", "2026-11-03") == ["Nadia owns staging."]
    hits = ricordo("recall", "who owns", "--until", "2026-11-03", "--json").document["hits"]
    assert [hit["entry"]["content"] for hit in hits] == ["Nadia owns staging."]


async def test_what_held_on_a_day_goes_by_when_it_and_its_successor_were_said(tmp_path: Path) -> None:
    said = [
        Message(
            role="user", parts=(Text(text=f"The refund window is {days} days."),), time=SAID + timedelta(days=after)
        )
        for days, after in ((30, 0), (45, 30))
    ]
    root = tmp_path / ".ricordo"
    given = settings(root, consolidates=True)
    async with Memory.open(root, scope=SCOPE, settings=given, clock=HandClock()) as memory:
        await memory.ingest(said, session="months")
    async with Memory.open(root, scope=SCOPE, settings=given, clock=HandClock()) as memory:
        old, new = sorted(await memory.entries(), key=lambda entry: entry.said_at or SAID)
        assert (old.state, old.superseded_by, old.valid_until) == ("superseded", new.id, date(2026, 5, 2))
        assert (old.valid_from, new.valid_from, new.valid_until) == (date(2026, 4, 2), date(2026, 5, 2), None)
        (then,) = await memory.entries(as_of=AFTER)
        assert (then.id, then.state, then.superseded_by, then.valid_until) == (old.id, "active", "", None)
        (hit,) = await memory.recall("refund window", as_of=AFTER)
        assert (hit.entry.id, hit.superseded_by) == (old.id, "")
        assert [hit.entry.id for hit in await memory.recall("refund window", limit=1)] == [new.id]
        assert [hit.entry.id for hit in await memory.recall("refund window", as_of="2026-06-01")] == [new.id, old.id]
        assert "30 days" in await memory.preamble(as_of=AFTER)
        assert "45 days" not in await memory.preamble(as_of=AFTER)
        assert "30 days" not in await memory.preamble(as_of="2026-06-01")
        assert await memory.preamble(as_of=BEFORE) == ""
        assert (place_of(root) / "workspace" / "memory" / "2026-05-02.md").is_file()


WEDNESDAY, MONDAY = date(2026, 11, 25), date(2026, 11, 23)
TIME_WORDS: list[tuple[date, str, str, str]] = [
    (WEDNESDAY, "2026-11-30", "", """From Monday we use alder.
        Ab Montag nutzen wir alder.|Ab dem Montag gilt birch.
        À partir de lundi, nous utilisons alder.|Dès lundi, on utilise birch.
        A partir del lunes usamos cedar.
        Da lunedì usiamo alder.|A partire da lunedì usiamo birch.
        A partir de segunda-feira usamos alder.
        С понедельника мы используем alder.|从周一起我们用alder。|从下周一开始我们用birch。|月曜からalderを使います。
        月曜日からbirchを使います。|월요일부터 alder를 사용합니다."""),
    (MONDAY, "2026-12-01", "", """From next Tuesday we use elm.
        Ab nächstem Dienstag nutzen wir elm.
        À partir de mardi prochain, nous utilisons elm.|A partir del próximo martes usamos elm.
        A partir del martes que viene usamos fir.|Dal prossimo martedì usiamo elm.
        Da martedì prossimo usiamo fir.
        A partir da próxima terça-feira usamos elm.
        Со следующего вторника мы используем elm.|从下周二起我们用elm。
        来週の火曜日からelmを使います。|다음 주 화요일부터 elm을 사용합니다."""),
    (WEDNESDAY, "2026-11-26", "", """From tomorrow we use hazel.|Ab morgen nutzen wir hazel.
        À partir de demain on utilise hazel.|A partir de mañana usamos hazel.
        Da domani usiamo hazel.
        A partir de amanhã usamos hazel.|С завтрашнего дня мы используем hazel.|从明天起我们用hazel。
        明日からhazelを使います。|내일부터 hazel을 사용합니다."""),
    (WEDNESDAY, "2026-11-30", "", """Starting next week we use larch.
        Ab nächster Woche nutzen wir larch.
        À partir de la semaine prochaine on utilise larch.
        A partir de la próxima semana usamos willow.
        Dalla prossima settimana usiamo larch.|A partir da próxima semana usamos larch.
        Со следующей недели мы используем larch.|从下周开始我们用larch。|来週からlarchを使います。
        다음 주부터 larch를 사용합니다."""),
    (WEDNESDAY, "2026-12-01", "", """From next month we use maple.
        Ab nächstem Monat nutzen wir maple.
        À partir du mois prochain on utilise maple.
        A partir del próximo mes usamos maple.|Dal prossimo mese usiamo maple.
        A partir do próximo mês usamos maple.|Со следующего месяца мы используем maple.
        从下个月开始我们用maple。
        来月からmapleを使います。|다음 달부터 maple을 사용합니다.|From 2026-12-01 we use oak.
        Ab dem 1. Dezember nutzen wir oak.
        À partir du 1er décembre, nous utilisons oak.
        A partir del 1 de diciembre usamos oak.|Dal 1 dicembre usiamo oak.
        A partir de 1 de dezembro usamos oak.|С 1 декабря мы используем oak.
        从12月1日起我们用oak。|12月1日からoakを使います。
        12월 1일부터 oak를 사용합니다."""),
    (WEDNESDAY, "2026-03-01", "", """Since March we deploy with pine.
        Seit März deployen wir mit pine.
        Depuis mars nous déployons avec pine.|Desde marzo desplegamos con pine.
        Desde março usamos pine.
        自3月起我们用pine部署。|3月からpineを使っています。|3월부터 pine을 사용하고 있습니다."""),
    (WEDNESDAY, "", "2026-03-01", """The port of rowan was 8080 until March.
        Der Port von juniper war bis März 8090.
        Le port de rowan était 8080 jusqu'en mars.|El puerto de rowan era 8080 hasta marzo.
        La porta di rowan era 8080 fino a marzo.|A porta de rowan era 8080 até março.
        Порт rowan был 8080 до марта.
        rowanの端末は3月までポート8080でした。|rowan의 포트는 3월까지 8080이었습니다."""),
    (WEDNESDAY, "", "2026-11-27", """We use spruce until Friday.|Wir nutzen spruce bis Freitag.
        On utilise spruce jusqu'à vendredi.|Usamos spruce hasta el viernes.
        Usiamo spruce fino a venerdì.
        Usamos spruce até sexta-feira.|Мы используем spruce до пятницы.|我们用spruce到周五为止。
        金曜までspruceを使います。
        금요일까지 spruce를 사용합니다."""),
]  # fmt: skip


@pytest.mark.parametrize("day", [WEDNESDAY, MONDAY])
async def test_words_of_time_say_in_ten_languages_from_when_and_until_when_a_memory_holds(
    tmp_path: Path, day: date
) -> None:
    root, clock = tmp_path / ".ricordo", HandClock(datetime(day.year, day.month, day.day, 8, tzinfo=UTC))
    wanted = {
        text.strip(): (start or None, end or None)
        for said, start, end, texts in TIME_WORDS
        for text in re.split(r"[|\n]", texts)
        if said == day
    }
    given = settings(root, consolidates=True)
    async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
        await memory.remember_many(list(wanted))
    async with HarnessAgent(ScriptedModel([]), memory=root, scope=SCOPE, settings=given, clock=clock) as agent:
        await agent.consolidate()
    found = {}
    async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
        for entry in await memory.entries():
            start, end = wanted[entry.content]
            found[entry.content] = (
                str(entry.valid_from) if start else None,
                str(entry.valid_until) if end else None,
            )
    assert found == wanted


async def test_an_announced_change_holds_from_its_day_on_and_not_before(tmp_path: Path) -> None:
    root, clock = tmp_path / ".ricordo", HandClock(datetime(2026, 11, 23, 8, tzinfo=UTC))
    given, asked = settings(root, consolidates=True), "Which package manager do we use for installs?"
    old, new = (
        "We use npm as our package manager for installs.",
        "From Monday we use pnpm as our package manager for installs.",
    )

    async def learn(text: str) -> None:
        async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
            await memory.ingest([Message(role="user", parts=(Text(text=text),), time=clock.now())], session=text[:2])

    await learn(old)
    clock.turn(days=2)
    await learn(new)
    clock.turn(days=1)
    monday, names = date(2026, 11, 30), ("npm", "pnpm")
    async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
        npm, pnpm = sorted(await memory.entries(), key=lambda entry: entry.content == old, reverse=True)
        assert (npm.state, npm.valid_until, npm.superseded_by) == ("active", monday, pnpm.id)
        assert (pnpm.state, pnpm.valid_from, pnpm.valid_until) == ("active", monday, None)
        assert [hit.entry.id for hit in await memory.recall(asked)] == [npm.id, pnpm.id]
        assert [hit.superseded_by for hit in await memory.recall(asked)] == ["", ""]
        answer = await memory.answer(asked)
        assert (answer.hit and answer.hit.entry.id, [hit.entry.id for hit in answer.further]) == (npm.id, [pnpm.id])
        preamble = await memory.preamble()
        assert all(f"use {name} as" in preamble for name in names)
        assert await memory.review() == []
        states = [
            {each.id: each.state for each in await memory.entries(as_of=day)} for day in ("2026-11-29", "2026-12-01")
        ]
        assert states == [{npm.id: "active", pnpm.id: "active"}, {npm.id: "superseded", pnpm.id: "active"}]
        forgotten = await memory.forget(pnpm.id)
        assert (await memory.entry(npm.id)).valid_until is None, forgotten
        await memory.undo()
        assert (await memory.entry(npm.id)).valid_until == monday
    clock.turn(days=10)
    await learn("The retro is on Fridays.")
    async with Memory.open(root, scope=SCOPE, settings=given, clock=clock) as memory:
        after = await memory.entry(npm.id)
        assert (after.state, after.valid_until, after.superseded_by) == ("superseded", monday, pnpm.id)
        for day, held, ended in (("2026-11-27", npm, ""), ("2026-12-01", pnpm, npm.id)):
            answer = await memory.answer(asked, as_of=day)
            assert answer.hit is not None
            assert (answer.hit.entry.id, [hit.entry.id for hit in answer.superseded]) == (
                held.id,
                [ended] * bool(ended),
            )
            assert next(hit.entry.id for hit in await memory.recall(asked, as_of=day)) == held.id
            assert (await memory.entry(npm.id, as_of=day)).state == ("superseded" if ended else "active")
        assert not (await memory.answer(asked, as_of="2026-11-22")).found
        assert "use npm as" not in await memory.preamble()


@pytest.mark.may_block("the command line is run inside of the test")
def test_every_command_that_looks_back_shows_imported_months_as_they_were_said(tmp_path: Path) -> None:
    said = [("2026-02-03", 30), ("2026-05-04", 45), ("2026-08-05", 60)]
    records = [
        {"role": role, "content": text, "time": f"{day}T09:00:00Z"}
        for day, days in said
        for role, text in (("user", f"The refund window is {days} days."), ("assistant", "Noted."))
    ]
    path = tmp_path / "months.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    ricordo("import", path)
    ricordo("consolidate")
    root = Path(ricordo("memory", "list", "--json").document["entries"] and ricordo("--json").document["root"])
    ids = {each["content"]: each["id"] for each in ricordo("memory", "list", "--json").document["entries"]}
    for number, (day, days) in enumerate(said):
        now, later = f"The refund window is {days} days.", [f"{days} days" for _, days in said[number + 1 :]]
        then = ("--as-of", f"{day[:8]}20", "--json")
        shown = {
            "recall": ricordo("recall", "refund window", *then).document["hits"][0]["entry"]["content"],
            "ask": ricordo("ask", "How long is the refund window?", *then).document["hit"]["entry"]["content"],
            "show": ricordo("memory", "show", ids[now], *then).document["content"],
            "list": next(
                each["content"]
                for each in ricordo("memory", "list", *then).document["entries"]
                if each["state"] == "active"
            ),
        }
        assert shown == dict.fromkeys(shown, now)
        preamble = ricordo("context", *then).document["preamble"]
        assert f"{days} days" in preamble
        assert not any(text in preamble for text in later)
        assert [*root.rglob(f"memory/{day}.md")], "the daily log of the day on which it was said"
    assert "not in memory" in ricordo("ask", "How long is the refund window?", "--as-of", "2026-01-20").out


def test_every_surface_shows_from_when_and_until_when_a_memory_holds(tmp_path: Path) -> None:
    ricordo("remember", "The port of the gateway is 8080 until 3 June 2027.")
    (listed,) = ricordo("memory", "list", "--json").document["entries"]
    assert {"observed", "valid_from", "valid_until", "superseded_by", "confirmed"} <= listed.keys()
    ricordo("consolidate")
    shown = ricordo("memory", "show", listed["id"], "--json").document
    assert (shown["valid_until"], shown["superseded_by"]) == ("2027-06-03", None)
    assert shown["observed"].startswith(shown["valid_from"])
    assert "valid until   2027-06-03" in ricordo("memory", "show", listed["id"]).out
    assert "until 2027-06-03" in ricordo("memory", "list").out
    assert "until 2027-06-03" in ricordo("why", listed["id"]).out
    assert "8080" in ricordo("context", "--as-of", "2027-01-01").out
    assert "Nothing is remembered yet." in ricordo("context", "--as-of", "2026-01-01").out
    assert ricordo("recall", "gateway port", "--as-of", "2026-01-01", "--json").document["hits"] == []
