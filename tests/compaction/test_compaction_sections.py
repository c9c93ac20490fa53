"""Sections are read as they are written, and a summary grows by lines that code keeps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from message_strategies import any_text
from ricordo.context import SECTION_NAMES
from ricordo.context.summary.request import has_valid_quotes, normalize_quote
from ricordo.context.summary.sections import (
    Citations,
    SummarySections,
    check_next_steps,
    find_missing_headings,
    find_new_lines,
    fit_sections,
    is_line,
    label_lines,
    parse_leniently,
    parse_sections,
    remove_lines,
    render_sections,
    split_outdated,
)
from ricordo.messages import estimate_text

_odd = st.sampled_from(
    ["None", "- none", "## SUMMARY", "SUMMARY: x", "**Next steps**", "OUTDATED: S1", "```", "- [S1] x"]
)
_lines = st.one_of(any_text(40), _odd, st.text("#*- SUMARY:\n", max_size=12)).filter(is_line)
_each = st.lists(_lines, max_size=4).map(tuple)
_sections = st.builds(lambda *lines: SummarySections(lines=lines), _each, _each, _each, _each)


@pytest.mark.req("AS-COMPACT-07")
@given(sections=_sections)
def test_what_is_written_is_read_back(sections: SummarySections) -> None:
    assert parse_sections(render_sections(sections)) == sections
    assert parse_leniently(render_sections(sections)) == sections


@given(
    text=st.one_of(any_text(), st.lists(st.one_of(any_text(20), _odd, st.sampled_from(SECTION_NAMES))).map("\n".join))
)
def test_no_text_makes_a_line_that_can_not_be_written(text: str) -> None:
    found = parse_leniently(text)
    assert all(is_line(line) for lines in found.lines for line in lines)
    assert parse_sections(render_sections(found)) == found
    assert (parse_sections(text) is None) == bool(find_missing_headings(text))


@pytest.mark.req("AS-BUG-01", "AS-COMPACT-07")
@pytest.mark.parametrize(
    "text",
    [
        "## SESSION INTENT\nPort it.\n## SUMMARY\n- Done.\n## ARTIFACTS\nNone\n## NEXT STEPS\n- Test it.",
        "**Session Intent**\nPort it.\n\n**Summary:**\n- Done.\n**Artifacts**\n**Next Steps:** - Test it.",
        "Here:\n# 1. SESSION INTENT\nPort it.\n# 2. SUMMARY\n- Done.\n# 3. ARTIFACTS\nn/a\n# 4. NEXT STEPS\n- Test it.",
        "```markdown\nSESSION INTENT: Port it.\nSUMMARY\n- Done.\nARTIFACTS:\nNONE\nNEXT STEPS\n- Test it.\n```",
    ],
)
def test_the_four_headings_are_known_in_every_dress(text: str) -> None:
    assert parse_sections(text) == SummarySections(lines=(("Port it.",), ("- Done.",), (), ("- Test it.",)))


@pytest.mark.req("AS-BUG-01")
def test_a_sentence_that_begins_like_a_heading_is_none() -> None:
    text = render_sections(
        SummarySections(lines=((), ("Summary writing is slow.", "Artifacts: none were made."), (), ()))
    )
    assert parse_sections(text) == SummarySections(
        lines=((), ("Summary writing is slow.", "Artifacts: none were made."), (), ())
    )
    assert find_missing_headings("## SUMMARY\nSESSION INTENT") == ("ARTIFACTS", "NEXT STEPS")


def test_labels_name_lines_and_the_last_line_says_which_are_outdated() -> None:
    sections = SummarySections(lines=(("- a",), ("- b", "c"), (), ("- d",)))
    assert label_lines(sections) == "[I1] a\n[S1] b\n[S2] c\n[N1] d"
    text, labels = split_outdated("## SUMMARY\n- e\n\n**OUTDATED:** S1, N1 (done), S99")
    assert (text, labels) == ("## SUMMARY\n- e", frozenset({"S1", "N1", "S99"}))
    assert remove_lines(sections, labels) == SummarySections(lines=(("- a",), ("c",), (), ()))
    assert split_outdated("x\nOUTDATED: None") == ("x", frozenset())
    assert split_outdated("The OUTDATED: flag of S1 stays.") == ("The OUTDATED: flag of S1 stays.", frozenset())


def test_a_repeated_line_is_added_once_whatever_its_label() -> None:
    kept = SummarySections(lines=((), ("- Port 8443.",), (), ()))
    new = SummarySections(lines=((), ("[S1] port 8443.", "- New.", "* new.", "- [S1] None"), (), ()))
    assert find_new_lines(kept, new) == SummarySections(lines=((), ("- New.",), (), ()))


@given(kept=_sections, new=_sections, limit=st.integers(1, 200), more=st.integers(0, 200))
def test_old_artifacts_go_first_then_old_lines_of_the_summary(
    kept: SummarySections, new: SummarySections, limit: int, more: int
) -> None:
    found = fit_sections(kept, new, limit=limit, max_tokens=limit + more)
    for at, (old, fresh, lines) in enumerate(zip(kept.lines, new.lines, found.lines, strict=True)):
        assert lines == (*old, *fresh)[len(old) + len(fresh) - len(lines) :], "only the oldest go"
        if len(lines) < len(old) + len(fresh) and at == 1:
            assert len(found.lines[2]) <= len(new.lines[2])
        if len(lines) < len(old) + len(fresh) and at in {0, 3}:
            assert found.lines[1] == found.lines[2] == ()
    if estimate_text(render_sections(found)) > limit + more:
        assert found.lines[1:] == ((), (), ()), "what the person wants goes last"
        assert found.lines[0] == new.lines[0]


@pytest.mark.req("CC-QUOTE")
@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('He said "deploy only from main".', True),
        ("He said “Deploy  ONLY from main.”", True),
        ("Er sagte „deploy only ... main“", True),
        ("«we don't deploy on Fridays»", True),
        ('He said "deploy straight to production".', False),
        ("He said “deploy only from main and never ask”", False),
        ("«we deploy on Fridays»", False),
        ("Er sagte »deploy only from main«", True),
        ("Er sagte »deploy straight to production«", False),
        ("« deploy only from main » et « maybe, one day, from another place »", False),
        ('The "dark mode" is gone.', True),
        ('Ran `git commit -m "fix the port"`.', True),
        ("彼は「本番に直接デプロイ」と言った", False),
        ("彼は『本番に直接デプロイ』と言った", False),
        ("彼は「メインからだけデプロイ」と言った", True),
        ("The «gate» 「短い」 stays", True),
    ],
)
def test_a_quote_is_right_when_its_words_were_said(text: str, right: bool) -> None:
    said = normalize_quote(
        "Please deploy\nonly from main. We don’t deploy on Fridays. メインからだけデプロイする "
        '{"c": "git commit -m \\"fix the port\\""}'
    )
    assert has_valid_quotes(text, said) is right


@pytest.mark.req("CC-QUOTE")
def test_a_step_must_cite_what_a_person_said_and_cites_of_nothing_go() -> None:
    cites = Citations(requests=frozenset({"5as9rkq9k5e3", "m1"}), others=frozenset({"7v4jhyjqvjaf"}))
    steps = (
        "- Port it. [5as9rkq9k5e3]",
        "- Test it. [rkq9k5e3, zz9999zz]",
        "- Write it down. [m1]",
        "- Send the keys out. [7v4jhyjqvjaf]",
        "- Delete all. [9q9q9q9q]",
        "- Look at [JIRA-12] and [the page](a.html).",
        "- [ ] Tick it. [5as9rk]",
    )
    found = check_next_steps(SummarySections(lines=((), ("- Old.",), (), steps)), cites)
    assert found.lines[3] == (
        "- Port it. [5as9rkq9k5e3]",
        "- Test it. [rkq9k5e3]",
        "- Write it down. [m1]",
        "- [ ] Tick it. [5as9rk]",
    )
    assert found.lines[1] == (
        "- Old.",
        "- noted, not asked for: Send the keys out. [7v4jhyjqvjaf]",
        "- noted, not asked for: Delete all.",
        "- noted, not asked for: Look at [JIRA-12] and [the page](a.html).",
    )
