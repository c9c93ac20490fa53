"""Extraction on a small labelled set: what a careful reader would note, and what they would let pass.

Each case is a dialogue (user lines start with "U:", assistant lines with "A:") and the kinds that its findings should
have, in order; an empty list means that nothing is worth noting. Where two kinds are equally right both are given, as
"fact|decision".
"""

from datetime import UTC, datetime

import pytest

from ricordo.extraction import Finding, RuleExtractionConfig, Utterance, extract_from_utterances

CASES: tuple[tuple[str, list[str]], ...] = (
    # Technical, English: worth noting.
    ("U: Our staging cluster runs in eu-west-1.", ["fact"]),
    ("U: Please remember that the nightly job needs 16 GB of memory.", ["fact|convention"]),
    ("U: We never merge on Fridays.", ["convention"]),
    ("U: Always run the formatter before you commit.", ["convention"]),
    ("U: For this repo use spaces, not tabs.", ["convention|preference"]),
    ("U: We decided to drop support for Python 3.9.", ["decision"]),
    ("U: Let's go with Redis for the queue.", ["decision"]),
    ("U: We switched from Travis to GitHub Actions last month.", ["decision"]),
    ("U: No, that's wrong. The service listens on 8443.", ["fact"]),
    ("U: It turned out that the timeout came from the proxy.", ["lesson"]),
    ("U: The deploy fails unless you export AWS_REGION first.", ["lesson"]),
    ("U: I want to finish the migration by Thursday.", ["goal"]),
    ("U: Our goal is to cut the build time in half.", ["goal"]),
    ("U: I prefer pytest over unittest.", ["preference"]),
    ("U: Keep your answers short, please.", ["preference"]),
    ("U: I don't like long explanations.", ["preference"]),
    ("U: Feature branches are named after the ticket, e.g. RIC-42-short-title.", ["fact|convention"]),
    ("U: Don't touch the generated files under src/gen.", ["convention"]),
    ("U: Secrets must never be logged.", ["convention"]),
    ("U: The database is owned by Priya's team.", ["fact"]),
    ("U: Actually, the limit is 500 requests per minute, not 50.", ["fact"]),
    ("A: I found it. The root cause was an expired certificate.", ["lesson"]),
    ("A: Which test runner do you use?\nU: pytest with xdist", ["fact"]),
    ("A: Should commit messages be in English?\nU: Yes.", ["fact|convention|preference"]),
    ("A: Do you want the summary as a table?\nU: No, I prefer plain lists.", ["preference"]),
    ("U: Can you add a retry? We use tenacity for that everywhere.", ["fact|convention"]),
    ("U: We chose SQLite because it needs no server.", ["decision"]),
    ("U: Going forward, all dates are ISO 8601.", ["convention|fact"]),
    ("U: My laptop is an M2 with 16 GB.", ["fact"]),
    ("U: I learned that the linter skips notebooks.", ["lesson"]),
    # Personal, English.
    ("U: I live in Porto with my husband and two cats.", ["fact"]),
    ("U: My sister Clara is getting married in June.", ["fact"]),
    ("U: I'm vegetarian and I can't stand coriander.", ["preference|fact"]),
    ("U: I'm training for a marathon next spring.", ["fact|goal"]),
    ("U: I adopted a puppy called Biscuit yesterday.", ["fact"]),
    ("U: I work night shifts as a nurse.", ["fact"]),
    # Other languages.
    ("U: Ich bevorzuge kurze Antworten.", ["preference"]),
    ("U: Wir verwenden immer Leerzeichen statt Tabs.", ["convention"]),
    ("U: Die Testdaten liegen unter testdata/golden.", ["fact"]),
    ("U: Nous avons choisi Postgres pour la production.", ["decision"]),
    ("U: J'habite à Lyon et je travaille comme infirmière.", ["fact"]),
    ("U: Nunca hagas push directamente a main.", ["convention"]),
    ("U: Hemos decidido usar Kubernetes.", ["decision"]),
    ("U: Abito a Torino con mia moglie.", ["fact"]),
    ("U: Abbiamo deciso di passare a Rust.", ["decision"]),
    ("U: Eu prefiro respostas curtas.", ["preference"]),
    ("U: Nunca rode migrações na sexta-feira.", ["convention"]),
    ("U: 我们决定使用 PostgreSQL。", ["decision"]),
    ("U: 提交之前必须运行测试。", ["convention"]),
    ("U: 我住在杭州。", ["fact"]),
    ("U: コミットの前に必ずテストを実行してください。", ["convention"]),
    ("U: 私は紅茶が好きです。", ["preference"]),
    # Nothing to note.
    ("U: Hello there!", []),
    ("U: Good morning, how are you today?", []),
    ("U: Thanks a lot, that was quick.", []),
    ("U: Perfect, looks good to me!", []),
    ("U: What does this function do?", []),
    ("U: Could you write a test for the parser?", []),
    ("U: Rename the variable to count.", []),
    ("U: Now run it again.", []),
    ("U: Why is the sky blue?", []),
    ("U: haha nice one", []),
    ("U: Sure, go ahead.", []),
    ("U: I need you to check the logs.", []),
    ("U: Summarise this article in three bullet points.", []),
    ("A: Great question! Here is how it works.", []),
    ("A: I can help with that. Would you like me to start with the tests?", []),
    ("A: I've updated the file and all tests pass now.", []),
    ("A: Let me check the configuration first.", []),
    ("A: Shall I commit this?\nU: Yes please.", []),
    ("A: You're welcome! Let me know if you need anything else.", []),
    ("U: ```\nalways = never\nwe_use = 'tabs'\n```", []),
    ("U: Maybe we could try something else?", []),
    ("U: Danke, das war sehr hilfreich.", []),
    ("U: Kannst du das bitte nochmal erklären?", []),
    ("U: Merci, c'est parfait !", []),
    ("U: ¿Puedes ejecutar las pruebas?", []),
    ("U: Grazie mille!", []),
    ("U: Obrigado, ficou ótimo!", []),
    ("U: 好的，谢谢！", []),
    ("U: 你能帮我看一下吗？", []),
    ("U: ありがとうございます。", []),
    ("U: これはどういう意味ですか？", []),
)  # fmt: skip

SAID = datetime(2026, 5, 8, 12, 0, tzinfo=UTC)


def _dialogue(script: str) -> list[Utterance]:
    """Turn "U: … A: …" lines into utterances; a line without a mark continues the one before."""
    lines: list[tuple[str, str]] = []
    for line in script.split("\n"):
        mark, _, rest = line.partition(": ")
        if mark in {"U", "A"}:
            lines.append((mark, rest))
        else:
            lines[-1] = (lines[-1][0], f"{lines[-1][1]}\n{line}")
    return [
        Utterance(message_id=f"m{at}", role="user" if mark == "U" else "assistant", text=text, time=SAID)
        for at, (mark, text) in enumerate(lines)
    ]


def _found(script: str) -> tuple[Finding, ...]:
    return extract_from_utterances(_dialogue(script), RuleExtractionConfig())


def _scores() -> tuple[float, float, float]:
    """Return precision and recall of noting anything, and the share of right kinds among what was rightly noted."""
    right = extra = missed = kinds = 0
    for script, expected in CASES:
        found = _found(script)
        matched = min(len(found), len(expected))
        right += matched
        extra += len(found) - matched
        missed += len(expected) - matched
        kinds += sum(finding.kind in wanted.split("|") for finding, wanted in zip(found, expected, strict=False))
    return right / (right + extra), right / (right + missed), kinds / right


def test_the_labelled_set_is_found_with_high_precision_and_recall() -> None:
    precision, recall, kinds = _scores()
    assert precision >= 0.95
    assert recall >= 0.9
    assert kinds >= 0.9


@pytest.mark.parametrize("script", [script for script, expected in CASES if not expected])
def test_nothing_is_noted_where_nothing_was_said(script: str) -> None:
    assert _found(script) == ()
