"""Processing: what an extraction reads of a conversation, and what it is spared."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo import FlushConfig
from ricordo.curation.profile.request import format_conversation
from ricordo.errors import InvalidSetting
from ricordo.extraction import Finding, extract, process_messages
from ricordo.extraction.extractors import MessageDelta, RuleExtractor
from ricordo.extraction.preprocessing import ProcessedMessages, ProcessingConfig
from ricordo.extraction.request import RequestMaterial, build_request
from ricordo.guard import FencedItem, Trust, render_fence
from ricordo.messages import JsonValue, Mark, Media, Message, Text, ToolCall, ToolResult, with_mark

TAGS = ("uploaded_files", "current_uploads")


def user(*texts: str, name: str | None = None, **metadata: JsonValue) -> Message:
    return Message(role="user", parts=tuple(Text(text=text) for text in texts), name=name, metadata=metadata)


def assistant(text: str, **metadata: JsonValue) -> Message:
    return Message(role="assistant", parts=(Text(text=text),), metadata=metadata)


def upload(tag: str) -> str:
    return f"<{tag}>\n- report.pdf\n  Path: /mnt/user-data/uploads/report.pdf\n</{tag}>"


def recalled(*texts: str) -> str:
    return render_fence([FencedItem(text=text, source="ledger 2026-05-08", trust=Trust.USER) for text in texts])


def said(found: ProcessedMessages) -> list[str]:
    return [message.text for message in found.messages]


ASKED, REPLIED = user("Where do the fixtures live?"), assistant("Under testdata/golden.")


@pytest.mark.req("DF-PROC")
def test_tool_messages_and_steps_that_call_tools_are_dropped_and_counted() -> None:
    call = Message(role="assistant", parts=(Text(text="Let me look."), ToolCall(id="1", name="list_files")))
    result = Message(role="tool", parts=(ToolResult(call_id="1", parts=(Text(text="golden/"),)),))
    found = process_messages([ASKED, call, result, REPLIED])
    assert found.messages == (ASKED, REPLIED)
    assert found.dropped == {"tool": 1, "tool call": 1}


@pytest.mark.req("DF-C2", "DF-PROC")
@pytest.mark.parametrize("tag", [*TAGS, "UPLOADED_FILES"])
def test_a_turn_that_only_uploads_goes_with_the_reply_to_it(tag: str) -> None:
    found = process_messages([ASKED, REPLIED, user(upload(tag)), assistant("I received report.pdf."), ASKED, REPLIED])
    assert said(found) == said(process_messages([ASKED, REPLIED, ASKED, REPLIED]))
    assert found.dropped == {"reply": 1, "upload": 1}


@pytest.mark.req("DF-PROC")
def test_an_upload_only_turn_takes_the_tool_steps_of_its_reply_along() -> None:
    step = Message(role="assistant", parts=(ToolCall(id="1", name="read_file"),))
    result = Message(role="tool", parts=(ToolResult(call_id="1"),))
    found = process_messages(
        [user(upload("uploaded_files")), step, result, assistant("It is a report."), ASKED, REPLIED]
    )
    assert found.messages == (ASKED, REPLIED)


@pytest.mark.req("DF-C2", "DF-PROC")
@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("first", ["upload", "question"])
def test_a_question_beside_an_upload_is_all_that_stays_and_the_original_is_not_changed(
    tag: str, parts: int, first: str
) -> None:
    texts = [f"{upload(tag)}\n{upload(tag)}", "Summarise chapter two."]
    texts = texts if first == "upload" else texts[::-1]
    original = user(*texts) if parts == 2 else user("\n\n".join(texts))
    before = replace(original)
    found = process_messages([original, REPLIED])
    assert said(found) == ["Summarise chapter two.", "Under testdata/golden."]
    assert "/mnt/" not in repr(found.messages)
    assert original == before


@pytest.mark.req("DF-B10", "DF-PROC")
def test_what_is_only_about_uploads_survives() -> None:
    texts = [
        "I build a file upload microservice at /mnt/user-data/uploads.",
        "What does the tag <uploaded_files> do?",
        "Look at `<uploaded_files>a</uploaded_files>` in the docs.",
        "```\n<current_uploads>\nx\n</current_uploads>\n```\nWe never strip these in our parser.",
        "We uploaded the document to v2.1. 我上传了一个文件。",
    ]
    assert said(process_messages([*map(user, texts), REPLIED]))[:-1] == texts


@pytest.mark.req("DF-B10", "DF-PROC", "DF-C2")
@pytest.mark.parametrize("key", ["files", "uploads", "attachments"])
def test_metadata_decides_before_the_text_does(key: str) -> None:
    block = upload("uploaded_files")
    none_listed = replace(user(f"{block}\nThat is what our format looks like."), metadata={key: []})
    cut_off = [
        replace(user(f"Read this.\n<{tag}>\n- a.pdf\n  Path: /mnt/a.p"), metadata={key: [{"filename": "a.pdf"}]})
        for tag in TAGS
    ]
    before_tags = user(f"{block}\nHi", additional_kwargs={"original_user_content": "What is in it?"})
    found = process_messages([none_listed, *cut_off, before_tags, REPLIED])
    assert said(found)[:4] == [none_listed.text, "Read this.", "Read this.", "What is in it?"]


@pytest.mark.req("DF-B10", "DF-PROC")
def test_a_picture_without_a_word_is_an_upload() -> None:
    picture = Message(role="user", parts=(Media(media_type="image/png", uri="file:///tmp/a.png"),))
    assert process_messages([picture, assistant("A cat."), ASKED, REPLIED]).messages == (ASKED, REPLIED)


@pytest.mark.req("DF-C6")
@pytest.mark.parametrize("mark", ["memory", "summary", "notice", "reminder"])
def test_marked_messages_are_never_read(mark: Mark) -> None:
    found = process_messages([with_mark(user("We deploy only from main."), mark), ASKED, REPLIED])
    assert found.messages == (ASKED, REPLIED)
    assert sum(found.dropped.values()) == 1


def test_what_was_cut_off_was_said() -> None:
    assert len(process_messages([ASKED, with_mark(REPLIED, "cut")]).messages) == 2


ANSWER: Mapping[str, JsonValue] = {
    "version": 1,
    "kind": "human_input_response",
    "source": "ask_clarification",
    "request_id": "r1",
    "response_kind": "option",
    "option_id": "o2",
    "value": "Staging, please.",
}


@pytest.mark.req("DF-C6")
@pytest.mark.parametrize("flag", ["hide_from_ui", "is_visually_hidden_from_conversation", "isMeta"])
@pytest.mark.parametrize("is_nested", [False, True], ids=["at the top", "as a framework keeps it"])
def test_a_hidden_message_goes_and_a_whole_clarification_answer_in_one_stays(flag: str, is_nested: bool) -> None:
    def hosted(message: Message, **fields: JsonValue) -> Message:
        return replace(message, metadata={"additional_kwargs": fields} if is_nested else fields)

    hidden = hosted(user("Today is Friday."), **{flag: True})
    shown = hosted(user("Today we ship."), **{flag: False})
    answer = hosted(user("Staging, please."), **{flag: True}, human_input_response=dict(ANSWER))
    unasked = hosted(assistant("Hidden too."), **{flag: True}, human_input_response=dict(ANSWER))
    found = process_messages([hidden, shown, answer, REPLIED, hosted(assistant("Hidden."), **{flag: True}), unasked])
    assert said(found) == ["Today we ship.", "Staging, please.", "Under testdata/golden."]
    assert found.dropped == {"hidden": 3}


@pytest.mark.req("DF-C6")
@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"version": True},
        {"kind": "other"},
        {"source": " "},
        {"request_id": None},
        {"value": ""},
        {"option_id": ""},
        {"response_kind": "guess"},
    ],
    ids=str,
)
def test_a_malformed_clarification_answer_stays_hidden(change: Mapping[str, JsonValue]) -> None:
    hidden = user("Staging.", hide_from_ui=True, human_input_response={**ANSWER, **change})
    assert process_messages([hidden, ASKED, REPLIED]).messages == (ASKED, REPLIED)


@pytest.mark.req("DF-C6", "FC-JUNK")
def test_a_block_of_recalled_memory_goes_and_what_a_person_said_around_it_stays() -> None:
    found = process_messages([user(f"Hi.\n{recalled('We deploy only from main.')}\nHow do we deploy?"), REPLIED])
    assert said(found)[0] == "Hi.\n\n[…]\n\nHow do we deploy?"
    assert found.recalled == ("We deploy only from main.",)


@pytest.mark.req("DF-C6", "FC-JUNK")
def test_a_block_that_was_cut_off_goes_to_its_end_and_a_talk_about_one_stays() -> None:
    block = recalled("We deploy only from main.", "Priya owns the gateway.")
    found = process_messages([user(f"See:\n{block[:-40]}"), user("What does <memory> mean?"), REPLIED])
    assert said(found)[:2] == ["See:", "What does <memory> mean?"]


@pytest.mark.req("FC-JUNK")
@pytest.mark.parametrize(
    "echo",
    [
        "We deploy only from main.",
        "You deploy only from main.",
        "As you told me, deployments only come from the main branch.",
        "Remember: deploy from main only!",
    ],
)
def test_an_assistant_that_repeats_what_was_recalled_teaches_nothing(echo: str) -> None:
    memory = with_mark(user(recalled("We deploy only from main.")), "memory")
    found = process_messages([ASKED, memory, assistant(echo), ASKED, REPLIED])
    assert found.messages == (ASKED, ASKED, REPLIED)
    assert found.dropped == {"echo": 1, "memory": 1}


@pytest.mark.req("FC-JUNK")
def test_what_an_assistant_adds_to_a_recalled_fact_stays() -> None:
    memory = with_mark(user(recalled("We deploy only from main.")), "memory")
    reply = assistant("You deploy only from main. The build failed because the runner had no disk space left.")
    found = process_messages([ASKED, memory, reply])
    assert said(found)[1] == "The build failed because the runner had no disk space left."


@pytest.mark.req("FC-JUNK")
def test_memory_that_a_tool_found_counts_as_recalled() -> None:
    result = ToolResult(call_id="1", parts=(Text(text=recalled("Tables are named in the plural.")),))
    found = process_messages(
        [ASKED, Message(role="tool", parts=(result,)), assistant("Tables are named in the plural.")]
    )
    assert found.recalled == ("Tables are named in the plural.",)
    assert found.dropped == {"echo": 1, "one-sided": 1, "tool": 1}


@pytest.mark.req("FC-JUNK")
def test_a_person_may_say_again_what_was_recalled() -> None:
    memory = with_mark(user(recalled("We deploy only from main.")), "memory")
    assert len(process_messages([memory, user("We deploy only from main."), REPLIED]).messages) == 2


ACKNOWLEDGED = [
    "ok", "OK!", "Thanks, got it.", "好的。", "嗯嗯，谢谢", "danke, alles klar!", "merci beaucoup !", "¡Vale, gracias!",
    "Va bene, grazie.", "Beleza, obrigado!", "ありがとうございます。", "네, 감사합니다", "Спасибо, понятно", "شكراً",
    "dank je wel",
    "ठीक है, धन्यवाद", "👍",
]  # fmt: skip


@pytest.mark.req("DF-C8", "DF-C9")
@pytest.mark.parametrize("text", ACKNOWLEDGED)
def test_an_acknowledgement_goes_with_its_reply_unless_it_answers_a_question(text: str) -> None:
    idle = process_messages([ASKED, REPLIED, user(text), assistant("You're welcome."), ASKED, REPLIED])
    assert said(idle) == said(process_messages([ASKED, REPLIED, ASKED, REPLIED]))
    assert idle.dropped == {"acknowledgement": 1, "reply": 1}
    question = assistant("Postgres runs on 5433. Shall we always deploy from main?")
    assert said(process_messages([ASKED, question, user(text), REPLIED]))[2:] == [text, "Under testdata/golden."]


@pytest.mark.req("DF-C8", "DF-C9")
def test_an_acknowledgement_answers_a_question_that_a_tool_asks() -> None:
    asking = Message(role="assistant", parts=(ToolCall(id="1", name="ask_clarification"),))
    found = process_messages([ASKED, asking, user("ok"), REPLIED])
    assert said(found) == [ASKED.text, "ok", REPLIED.text]


@pytest.mark.req("DF-C8", "DF-C9")
@pytest.mark.parametrize(
    "text", ["ok, use tabs then", "The OK button is broken", "thanks to Ana we ship", "好的方案是用缓存"]
)
def test_an_acknowledgement_inside_a_sentence_is_kept(text: str) -> None:
    assert said(process_messages([user(text), REPLIED]))[0] == text


@pytest.mark.req("DF-C8", "DF-C9")
@pytest.mark.parametrize("left", [[ASKED], [REPLIED], [user("ok"), REPLIED], []])
def test_nothing_is_read_unless_both_sides_said_something(left: list[Message]) -> None:
    assert process_messages(left).messages == ()


@pytest.mark.req("DF-C8")
def test_two_people_talking_are_two_sides_and_one_side_can_be_asked_for() -> None:
    assert len(process_messages([user("I moved.", name="Ana"), user("Where?", name="Bo")]).messages) == 2
    assert len(process_messages([ASKED], config=ProcessingConfig(both_sides=False)).messages) == 1


@pytest.mark.req("DF-FMT")
def test_a_long_message_keeps_its_head_and_its_tail() -> None:
    text = "Begin here. " + "middle " * 3_000 + "End there."
    found = process_messages([user(text), REPLIED], config=ProcessingConfig(max_message_chars=1_000))
    short = said(found)[0]
    assert short.startswith("Begin here. middle")
    assert short.endswith("middle End there.")
    assert "[…]" in short
    assert 900 < len(short) <= 1_000


@pytest.mark.req("AS-CFG-01")
@pytest.mark.parametrize("change", [{"max_message_chars": 10}, {"signal_window": 0}], ids=str)
def test_a_setting_that_leaves_nothing_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(InvalidSetting):
        ProcessingConfig(**change)  # type: ignore[arg-type]


PIECES = st.sampled_from(
    ["ok", "We use tabs.", upload("uploaded_files"), recalled("We use tabs."), "```", "?", "<", "x" * 300, "", "好的"]
)
MESSAGES = st.lists(
    st.builds(
        lambda role, text, hide: Message(role=role, parts=(Text(text=text),), id="i", metadata={"hide_from_ui": hide}),
        st.sampled_from(["user", "assistant", "tool", "system"]),
        st.lists(PIECES, max_size=3).map("\n".join),
        st.booleans(),
    ),
    max_size=8,
)


@pytest.mark.req("DF-PROC")
@settings(max_examples=40)
@given(MESSAGES)
def test_every_message_is_kept_in_order_or_counted_once_and_a_second_reading_changes_nothing(
    messages: list[Message],
) -> None:
    config = ProcessingConfig(both_sides=False, max_message_chars=200)
    found = process_messages(messages, config=config)
    assert len(found.messages) + sum(found.dropped.values()) == len(messages)
    assert all(message.text.strip() and len(message.text) <= 200 for message in found.messages)
    assert "<memory" not in "".join(said(found))


@pytest.mark.req("DF-B22")
@pytest.mark.parametrize("between", [upload("uploaded_files"), recalled("Priya owns the gateway.")])
def test_no_quote_reaches_across_what_was_taken_out(between: str) -> None:
    original = user(f"My laptop is an M2.\n{between}\nMy phone is a Pixel.")
    found = extract(process_messages([original, REPLIED]).messages)
    assert "M2" in found[0].content
    assert all(finding.quote in original.text for finding in found)


def fed(*messages: Message) -> list[str]:
    """What an extraction is fed of these new messages."""
    given: list[str] = []

    def rules(read: Sequence[Message]) -> Sequence[Finding]:
        given.extend(message.text for message in read)
        return ()

    named = [replace(message, id=f"m{at}") for at, message in enumerate(messages)]
    delta = MessageDelta(agent="main", session="s", scope=None, context=(), new=named)
    anyio.run(RuleExtractor(rules=rules), delta)
    return given


@pytest.mark.req("DF-PROC", "DF-C1", "DF-C3", "DF-C4")
def test_an_extraction_is_fed_no_tools_no_upload_tags_and_no_upload_only_turn_with_its_reply() -> None:
    call = Message(role="assistant", parts=(Text(text="Let me look."), ToolCall(id="1", name="list_files")))
    result = Message(role="tool", parts=(ToolResult(call_id="1", parts=(Text(text="golden/"),)),))
    for tag in TAGS:
        only, mixed = user(upload(tag)), user(f"Compare it.\n{upload(tag)}")
        talk = [ASKED, call, result, REPLIED, only, assistant("I see a report."), mixed, assistant("Compared.")]
        assert fed(*talk) == [ASKED.text, REPLIED.text, "Compare it.", "Compared."]
        assert fed(only, assistant("I see a report.")) == []


@pytest.mark.req("DF-C2", "DF-C5")
@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("listed", [False, True])
def test_a_model_is_asked_about_the_question_beside_an_upload_and_is_told_no_path(tag: str, listed: bool) -> None:
    file = Media(media_type="application/pdf", uri="/mnt/user-data/uploads/report.pdf")
    parts = (Text(text=upload(tag)), file, Text(text="What is in chapter two?"))
    original = replace(user(f"{upload(tag)}\n\nWhat is in chapter two?"), id="m1")
    original = replace(original, parts=parts) if listed else original
    before = replace(original)
    delta = MessageDelta(agent="main", session="s", scope=None, context=(), new=[original, replace(REPLIED, id="m2")])
    prompts = [
        build_request(RequestMaterial(new=delta.apply_processing(delta.new)), FlushConfig()).text,
        format_conversation(delta.build_section_input(2).messages),
    ]
    assert original == before
    for prompt in prompts:
        assert "What is in chapter two?" in prompt
        assert not any(piece in prompt for piece in ("/mnt/", "report.pdf", tag))


@pytest.mark.req("DF-C6", "DF-C7")
def test_an_extraction_is_never_fed_what_is_hidden_or_injected_but_for_a_whole_clarification_answer() -> None:
    block = recalled("We deploy only from main.")
    injected = [with_mark(user(block), "memory"), user(block), user("Today is Friday.", hide_from_ui=True)]
    answer = user("Staging, please.", hide_from_ui=True, human_input_response=dict(ANSWER))
    broken = user("Production.", hide_from_ui=True, human_input_response={**ANSWER, "request_id": ""})
    assert fed(ASKED, *injected, answer, broken, REPLIED) == [ASKED.text, "Staging, please.", REPLIED.text]
