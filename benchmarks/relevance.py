"""The relevance model: `python benchmarks/relevance.py` measures it, `... train` fits its weights again.

The labelled conversations stand in `benchmarks/learning`: in `train` those the weights are fitted on, in `test` those
that are held out. Each sentence of a person has a label in brackets behind it, with the kinds F fact, D decision, R
rule, P preference, L lesson, C correction and A short answer, which are worth remembering, and T task, Q question, M
moment, S small talk, H hearsay and N needs its context, which are not; of an assistant only lessons and facts have one.

The fit is a logistic regression with a squared penalty, by L-BFGS from zero; the same files give the same bytes.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from ricordo.extraction.config import RuleExtractionConfig
from ricordo.extraction.contract import Utterance
from ricordo.extraction.relevance import KEEP_BITS, KIND_BITS, KINDS, StatementContext, weigh_features
from ricordo.extraction.rules import extract_from_utterances
from ricordo.extraction.statements import Statement, build_statement, find_last_question
from ricordo.language import Sentence, detect_language, split_sentences

CORPUS = Path(__file__).parent / "learning"
WEIGHTS = Path(__file__).parent.parent / "src" / "ricordo" / "extraction" / "relevance.bin"
WORTH = frozenset("FDRPLCA")
_KIND_OF_LABEL = {"F": "fact", "A": "fact", "D": "decision", "R": "convention", "P": "preference", "L": "lesson"}
_LABEL = re.compile(r"\[([FDRPLCATQMSHN])(?::([^\]]*))?\]")
_LINE = re.compile(r"(?P<role>[UAR])(?:@(?P<name>[^:]+))?:\s*(?P<rest>.*)")
_KEEP_PENALTY, _KIND_PENALTY = 2.5, 2.0
_WORTH_WEIGHT = 1.5
"""How much more a sentence that is worth remembering counts in the fit, as two in three of the others are chatter."""
_ROUNDS = 150
_FOLDS = 6
Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A sentence with its label; the label is empty where it has none."""

    text: str
    label: str
    value: str = ""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A message of a conversation: its session, role (U, A or R), speaker, day and sentences."""

    session: int
    role: str
    name: str | None
    day: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """A file of labelled sessions in one language."""

    path: Path
    language: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A sentence as the model sees it, with its label and the file it stands in."""

    context: StatementContext
    label: str
    language: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class Rows:
    """A sparse matrix: the columns and values of each row one after the other, and where each row starts."""

    columns: Integers
    values: Floats
    starts: Integers

    @property
    def row_of_value(self) -> Integers:
        """The row of each value."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def times(self, weights: Floats) -> Floats:
        """Return the product with a matrix that has a column for each class."""
        rows, count = self.row_of_value, len(self.starts) - 1
        return np.stack(
            [np.bincount(rows, self.values * each[self.columns], minlength=count) for each in weights.T], axis=1
        )

    def transposed_times(self, residuals: Floats, width: int) -> Floats:
        """Return the product of the transposed matrix with residuals."""
        rows = self.row_of_value
        return np.stack(
            [np.bincount(self.columns, self.values * each[rows], minlength=width) for each in residuals.T], axis=1
        )

    def take(self, indices: Integers) -> "Rows":
        """Return a matrix with only these rows."""
        spans = [slice(self.starts[at], self.starts[at + 1]) for at in indices]
        lengths = [span.stop - span.start for span in spans]
        return Rows(
            columns=np.concatenate([self.columns[span] for span in spans]),
            values=np.concatenate([self.values[span] for span in spans]),
            starts=np.concatenate([[0], np.cumsum(lengths)]),
        )


def read_clauses(body: str) -> tuple[Clause, ...]:
    """Return the sentences of a line with their labels."""
    clauses: list[Clause] = []
    position = 0
    for match in _LABEL.finditer(body):
        if text := body[position : match.start()].strip():
            clauses.append(Clause(text=text, label=match[1], value=match[2] or ""))
        position = match.end()
    if rest := body[position:].strip():
        clauses.append(Clause(text=rest, label=""))
    return tuple(clauses)


def read_conversation(path: Path) -> Conversation:
    """Return the labelled conversation of a file."""
    language, day, session = "en", "2026-01-01", 0
    lines: list[Line] = []
    for row in path.read_text("utf8").splitlines():
        if row.startswith("@"):
            found = re.search(r"lang:\s*(\w+)", row)
            language = found[1] if found else language
        elif row.startswith("#"):
            day, session = row[1:].strip()[:10], session + 1
        elif match := _LINE.match(row):
            clauses = read_clauses(match["rest"])
            lines.append(Line(session=session, role=match["role"], name=match["name"], day=day, clauses=clauses))
    return Conversation(path=path, language=language, lines=tuple(lines))


@cache
def conversations(part: str) -> tuple[Conversation, ...]:
    """Return the conversations of `train` or `test`, by name."""
    return tuple(read_conversation(path) for path in sorted((CORPUS / part).glob("*.txt")))


def iter_examples(conversation: Conversation) -> Iterator[Example]:
    """Yield the sentences of people with their labels, and those of the assistant, in order."""
    previous: tuple[str, int, tuple[StatementContext, ...]] | None = None
    for line in conversation.lines:
        if line.role == "R":
            continue
        clauses = line.clauses if line.role == "U" else tuple(_cut_clauses(line.clauses))
        is_reply = previous is not None and previous[0] != line.role and previous[1] == line.session
        before = previous[2] if previous and is_reply else ()
        contexts = _build_contexts(line, clauses, before)
        for context, clause in zip(contexts, clauses, strict=True):
            if clause.label or line.role == "A":
                yield Example(
                    context=context, label=clause.label, language=conversation.language, path=conversation.path
                )
        previous = line.role, line.session, contexts


def _cut_clauses(clauses: Sequence[Clause]) -> Iterator[Clause]:
    """Yield the single sentences of an assistant; a label belongs to the last sentence before it."""
    for clause in clauses:
        *others, last = [sentence.text for sentence in split_sentences(clause.text)] or [clause.text]
        yield from (Clause(text=text, label="") for text in others)
        yield Clause(text=last, label=clause.label)


def _build_contexts(
    line: Line, clauses: Sequence[Clause], before: Sequence[StatementContext]
) -> tuple[StatementContext, ...]:
    statements = _read_clause_statements(line, clauses)
    question = find_last_question(tuple(context.statement for context in before))
    return tuple(
        StatementContext(
            statement=statement,
            index=index,
            count=len(statements),
            by_user=line.role == "U",
            previous=statements[index - 1] if index else None,
            following=statements[index + 1] if index + 1 < len(statements) else None,
            question=question,
        )
        for index, statement in enumerate(statements)
    )


def _read_clause_statements(line: Line, clauses: Sequence[Clause]) -> list[Statement]:
    language = detect_language(" ".join(clause.text for clause in clauses))
    return [
        build_statement(Sentence(text=clause.text, start=0, end=len(clause.text)), language, among_people=False)
        for clause in clauses
    ]


def to_rows(examples: Sequence[Example], bits: int) -> Rows:
    """Return the features of the examples as columns by their hash."""
    columns: list[int] = []
    values: list[float] = []
    starts = [0]
    for example in examples:
        features = weigh_features(example.context)
        columns.extend(crc32(name.encode("utf-8", "surrogatepass")) & ((1 << bits) - 1) for name in features)
        values.extend(features.values())
        starts.append(len(columns))
    return Rows(columns=np.array(columns), values=np.array(values), starts=np.array(starts))


def fit(rows: Rows, wanted: Floats, bits: int, penalty: float) -> Floats:
    """Return the weights of a logistic regression, of one column, or a softmax regression, of more."""
    width = 1 << bits
    counts = 1 + (_WORTH_WEIGHT - 1) * wanted if wanted.shape[1] == 1 else np.ones((len(wanted), 1))

    def loss(weights: Floats) -> tuple[float, Floats]:
        scores = rows.times(weights)
        if wanted.shape[1] == 1:
            likelihood = np.logaddexp(0, scores) - wanted * scores
            shares = 1 / (1 + np.exp(-scores))
        else:
            highest = scores.max(axis=1, keepdims=True)
            exponents = np.exp(scores - highest)
            total = exponents.sum(axis=1, keepdims=True)
            likelihood = highest + np.log(total) - (wanted * scores).sum(axis=1, keepdims=True)
            shares = exponents / total
        gradient = rows.transposed_times(counts * (shares - wanted), width) + penalty * weights
        return float((counts * likelihood).sum() + penalty * (weights**2).sum() / 2), gradient

    return minimize(loss, np.zeros((width, wanted.shape[1])))


def minimize(loss: Callable[[Floats], tuple[float, Floats]], start: Floats, memory: int = 8) -> Floats:
    """Return where the loss is least, by L-BFGS with a backtracking search."""
    weights, (value, gradient) = start, loss(start)
    history: list[tuple[Floats, Floats]] = []
    for _ in range(_ROUNDS):
        direction = -_apply_inverse_hessian(gradient, history)
        slope, step = float((gradient * direction).sum()), 1.0
        while True:
            candidate = weights + step * direction
            next_value, next_gradient = loss(candidate)
            if next_value <= value + 1e-4 * step * slope or step < 1e-6:
                break
            step /= 2
        moved, turned = candidate - weights, next_gradient - gradient
        if float((moved * turned).sum()) > 1e-10:
            history = [*history, (moved, turned)][-memory:]
        is_done = abs(value - next_value) < 1e-6 * abs(value)
        weights, value, gradient = candidate, next_value, next_gradient
        if is_done:
            break
    return weights


def _apply_inverse_hessian(gradient: Floats, history: Sequence[tuple[Floats, Floats]]) -> Floats:
    direction, shares = gradient.copy(), []
    for moved, turned in reversed(history):
        share = float((moved * direction).sum() / (moved * turned).sum())
        shares.append(share)
        direction -= share * turned
    if history:
        moved, turned = history[-1]
        direction *= float((moved * turned).sum() / (turned * turned).sum())
    else:
        direction /= max(1.0, float(np.linalg.norm(direction)))
    for (moved, turned), share in zip(history, reversed(shares), strict=True):
        direction += moved * (share - float((turned * direction).sum() / (moved * turned).sum()))
    return direction


def fit_keep(examples: Sequence[Example]) -> Floats:
    """Return the weights of whether a sentence is worth remembering."""
    wanted = np.array([[float(example.label in WORTH)] for example in examples])
    return fit(to_rows(examples, KEEP_BITS), wanted, KEEP_BITS, _KEEP_PENALTY)


def fit_kinds(examples: Sequence[Example]) -> Floats:
    """Return the weights of the kinds, one column each, from the sentences that are worth remembering."""
    kept = [example for example in examples if example.label in _KIND_OF_LABEL]
    wanted = np.array([[float(_KIND_OF_LABEL[example.label] == kind) for kind in KINDS] for example in kept])
    return fit(to_rows(kept, KIND_BITS), wanted, KIND_BITS, _KIND_PENALTY)


def encode(keep: Floats, kinds: Floats) -> bytes:
    """Return the weights as the package reads them: their scales in one line, then a byte for each weight."""
    keep_scale, kind_scale = _scale(keep), _scale(kinds)
    columns = ((keep, keep_scale), *((kinds[:, at : at + 1], kind_scale) for at in range(len(KINDS))))
    table = b"".join(np.rint(weights / scale).astype(np.int8).tobytes() for weights, scale in columns)
    return f"{keep_scale:.8f} {kind_scale:.8f}\n".encode() + table


def _scale(weights: Floats) -> float:
    return round(float(np.abs(weights).max()) / 127, 6) + 1e-6


def cross_validate(examples: Sequence[Example]) -> Floats:
    """Return the score of each example by a model that was fitted without the examples of its file."""
    rows, paths = to_rows(examples, KEEP_BITS), sorted({example.path for example in examples})
    fold = np.array([paths.index(example.path) % _FOLDS for example in examples])
    wanted = np.array([[float(example.label in WORTH)] for example in examples])
    scores = np.zeros(len(examples))
    for number in range(_FOLDS):
        train, rest = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        weights = fit(rows.take(train), wanted[train], KEEP_BITS, _KEEP_PENALTY)
        scores[rest] = rows.take(rest).times(weights)[:, 0]
    return scores


@dataclass(frozen=True, kw_only=True)
class Score:
    """Findings, those of them that hold something worth remembering, what was worth it, and what of it was found."""

    findings: int = 0
    right: int = 0
    worth: int = 0
    found: int = 0

    def __add__(self, other: "Score") -> "Score":
        """Return the sums."""
        return Score(
            findings=self.findings + other.findings,
            right=self.right + other.right,
            worth=self.worth + other.worth,
            found=self.found + other.found,
        )

    @property
    def precision(self) -> float:
        """The share of findings that hold something worth remembering."""
        return self.right / max(1, self.findings)

    @property
    def recall(self) -> float:
        """The share of what was worth remembering that is in a finding."""
        return self.found / max(1, self.worth)


def score_extraction(part: str) -> dict[str, Score]:
    """Return how well extraction does on the people's sentences of a part, by language and for all."""
    scores: dict[str, Score] = defaultdict(Score)
    for conversation in conversations(part):
        score = score_conversation(conversation)
        scores[conversation.language] += score
        scores["all"] += score
    return dict(scores)


def score_conversation(conversation: Conversation) -> Score:
    """Return how well extraction does on the people's sentences of one conversation."""
    score = Score()
    for session in sorted({line.session for line in conversation.lines}):
        lines = [line for line in conversation.lines if line.session == session and line.role != "R"]
        utterances = [
            Utterance(
                message_id=str(number),
                role="user" if line.role == "U" else "assistant",
                text=" ".join(_close(clause.text) for clause in line.clauses),
                speaker=line.name,
                time=datetime.fromisoformat(f"{line.day}T09:00:00+00:00"),
            )
            for number, line in enumerate(lines)
        ]
        findings = extract_from_utterances(utterances, RuleExtractionConfig())
        for number, line in enumerate(lines):
            if line.role == "U":
                score += _score_line(line, [each.quote for each in findings if each.message_ids[0] == str(number)])
    return score


def _close(text: str) -> str:
    """Return a sentence with a line break behind it where no sign ends it."""
    return text if text[-1] in ".?!:,;。？！…" else f"{text}\n"


def _score_line(line: Line, quotes: Sequence[str]) -> Score:
    worth = [_normalize(clause.text) for clause in line.clauses if clause.label in WORTH]
    quoted = [_normalize(quote) for quote in quotes]
    return Score(
        findings=len(quoted),
        right=sum(any(_overlaps(text, quote) for text in worth) for quote in quoted),
        worth=len(worth),
        found=sum(any(_overlaps(text, quote) for quote in quoted) for text in worth),
    )


def _overlaps(text: str, quote: str) -> bool:
    return text in quote or (len(quote) > 12 and quote in text)


def _normalize(text: str) -> str:
    return " ".join(text.split()).strip(" .")


def report() -> None:
    """Print how well the model does by itself when files are held out, and how well extraction does with it."""
    examples = [each for talk in conversations("train") for each in iter_examples(talk) if each.context.by_user]
    scores, wanted = cross_validate(examples), np.array([example.label in WORTH for example in examples])
    for threshold in (0.3, 0.45, 0.6):
        kept = scores > np.log(threshold / (1 - threshold))
        precision, recall = (kept & wanted).sum() / kept.sum(), (kept & wanted).sum() / wanted.sum()
        sys.stdout.write(f"sentences held out by file, from {threshold}: P {precision:.3f} R {recall:.3f}\n")
    for part in ("train", "test"):
        for language, score in sorted(score_extraction(part).items()):
            sys.stdout.write(f"{part} {language}: P {score.precision:.3f} R {score.recall:.3f} of {score.worth}\n")


def train() -> None:
    """Fit the weights on the conversations of `train` and write them into the package."""
    examples = [example for conversation in conversations("train") for example in iter_examples(conversation)]
    WEIGHTS.write_bytes(encode(fit_keep(examples), fit_kinds(examples)))


if __name__ == "__main__":
    if sys.argv[1:] == ["train"]:
        train()
    else:
        report()
