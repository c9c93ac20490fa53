"""Permission rules: a line says what it means, and nothing that a rule forbids is let through by another one."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from message_strategies import any_text, json_values
from ricordo.errors import InvalidSetting
from ricordo.guard import PermissionRule, ToolPattern, render_rule
from ricordo.guard.permissions import (
    Decision,
    PermissionQuery,
    collect_argument_texts,
    decide,
    parse_pattern,
    parse_rule,
    render_pattern,
)

pytestmark = pytest.mark.req("CC-ENFORCE")

DECISIONS: tuple[Decision, ...] = ("allow", "deny", "ask")
tricky = st.text(st.sampled_from("ab*()\\uU05c \n\t#[]?."), max_size=12)
patterns = st.builds(
    ToolPattern, tool=st.one_of(any_text(8), tricky).filter(bool), argument=st.one_of(any_text(), tricky)
)
rules = st.builds(PermissionRule, decision=st.sampled_from(DECISIONS), pattern=patterns)


def decision(called: PermissionQuery, *lines: str) -> str | None:
    rule = decide([parse_rule(line) for line in lines], called)
    return render_rule(rule) if rule else None


def command(text: str, tool: str = "shell") -> PermissionQuery:
    return PermissionQuery(tool=tool, argument=text, texts=(text,))


def on(path: str, tool: str = "write_file") -> PermissionQuery:
    return PermissionQuery(tool=tool, argument=path, texts=(path, "some content"))


@given(rules)
@example(PermissionRule(decision="deny", pattern=ToolPattern(tool="a (b)", argument=" x)\n(\\u0041 \\")))
@example(PermissionRule(decision="deny", pattern=ToolPattern(tool="\U000e0001", argument="\ud83d")))
def test_every_rule_is_read_back_from_its_line(rule: PermissionRule) -> None:
    line = render_rule(rule)
    assert line.isprintable()
    assert parse_rule(line) == rule
    assert parse_pattern(render_pattern(rule.pattern)) == rule.pattern


@pytest.mark.parametrize(
    ("line", "made", "tool", "argument"),
    [
        ("deny shell(git push --force*)", "deny", "shell", "git push --force*"),
        ("  ASK\twrite_file ( src/* ) ", "ask", "write_file", " src/* "),
        ("allow *", "allow", "*", ""),
        ('deny shell(echo ")" (x))', "deny", "shell", 'echo ")" (x)'),
        ("deny read_file(C:\\new\\users\\*)", "deny", "read_file", "C:\\new\\users\\*"),
        ("deny shell(a\\u000ab)", "deny", "shell", "a\nb"),
        ("deny shell(a\nb)", "deny", "shell", "a\nb"),
        ("deny shell(größe 😀 # no comment)", "deny", "shell", "größe 😀 # no comment"),
    ],
)
def test_a_line_is_read_as_a_person_means_it(line: str, made: Decision, tool: str, argument: str) -> None:
    rule = parse_rule(line, reason="so", source="user")
    pattern = ToolPattern(tool=tool, argument=argument)
    assert rule == PermissionRule(decision=made, pattern=pattern, reason="so", source="user")


@pytest.mark.parametrize(
    "line",
    [
        "",
        " ",
        "deny",
        "forbid shell",
        "shell(git push)",
        "deny (x)",
        "deny shell(git",
        "deny shell) x",
        "deny shell(a) b",
        "deny git push",
        "deny shell x(y)",
        "allow shell()",
        "deny shell ()",
        "x" * 10_000,
        None,
        5,
        ["deny shell"],
        b"deny shell",
    ],
)
def test_a_line_that_is_no_rule_is_refused_with_the_form_to_use(line: object) -> None:
    with pytest.raises(InvalidSetting, match=r"such as `deny shell\(git push\*\)`") as refused:
        parse_rule(line)  # type: ignore[arg-type]
    assert len(str(refused.value)) < 400


def test_empty_parentheses_do_not_mean_every_call() -> None:
    with pytest.raises(InvalidSetting, match="Leave the parentheses out to mean every call"):
        parse_pattern("shell()")
    assert parse_pattern("shell( )") == ToolPattern(tool="shell", argument=" ")


@pytest.mark.parametrize(
    ("line", "called", "matches"),
    [
        ("deny shell", command("anything"), True),
        ("deny shell", PermissionQuery(tool="shell"), True),
        ("deny shell(*)", PermissionQuery(tool="shell"), True),
        ("deny shell", PermissionQuery(tool="Shell"), False),
        ("deny mcp__*__delete", PermissionQuery(tool="mcp__github__delete"), True),
        ("deny *", PermissionQuery(tool="x"), True),
        ("deny read_file(Secret)", on("secret", "read_file"), False),
        ("deny read_file(a?c)", on("abc", "read_file"), False),
        ("deny read_file(a[bc]d)", on("abd", "read_file"), False),
        ("deny read_file(a[bc]d)", on("a[bc]d", "read_file"), True),
        ("deny read_file(a.c)", on("abc", "read_file"), False),
        ("deny read_file(*größe*)", on("die größe 😀", "read_file"), True),
        ("deny note(a*b)", on("a\n\nb", "note"), True),
        ("deny note(ab*ba)", on("aba", "note"), False),
        ("deny note(*x*y*)", on("-y-x-", "note"), False),
        ("deny note(a**b)", on("ab", "note"), True),
        ("deny note(*ab*ab*)", on("-ab-", "note"), False),
        ("deny note(a*bc*c)", on("abc", "note"), False),
        ("ask write_file(*content*)", on("a"), True),
        ("allow write_file(*content*)", on("a"), False),
    ],
)
def test_a_star_is_any_text_and_nothing_else_is_special(line: str, called: PermissionQuery, matches: bool) -> None:
    assert decision(called, line) == (line if matches else None)


@pytest.mark.parametrize(
    "path",
    [
        "secrets/a",
        "./secrets/a",
        ".//secrets/a",
        "src/../secrets/a",
        "x/./../secrets//a",
        "secrets/b/../a",
        "secrets/",
        "./secrets/",
    ],
)
def test_a_denied_path_is_denied_in_every_spelling(path: str) -> None:
    assert decision(on(path), "allow write_file", "deny write_file(secrets/*)") == "deny write_file(secrets/*)"
    assert decision(on(path), "deny write_file(./secrets/*)") is not None


def test_a_denied_folder_is_denied_with_a_slash_at_its_end_too() -> None:
    assert decision(on("src/./secrets//"), "deny write_file(src/secrets)") is not None
    assert decision(on("//etc/passwd"), "deny write_file(/etc/*)") is not None


@pytest.mark.parametrize("path", ["secret", "./secret", "secret/", "x/../secret", "secret/key"])
@pytest.mark.parametrize("name", ["read_file", "edit_file", "list_files", "mcp__disk__open"])
def test_one_denial_may_close_a_folder_to_every_tool(path: str, name: str) -> None:
    assert decision(on(path, name), f"allow {name}", "deny *(secret/*)") == "deny *(secret/*)"
    search = PermissionQuery(tool="grep_files", argument="x", texts=("x", path))
    assert decision(search, "deny *(secret/*)") is not None
    for harmless in ("", ".", "/", "secrets", "src"):
        assert decision(PermissionQuery(tool=name, argument=harmless, texts=(harmless,)), "deny *(secret/*)") is None
    assert decision(PermissionQuery(tool=name, texts=("",)), "deny *(/*)") is None


def test_a_denied_path_is_denied_among_the_other_texts_of_a_call() -> None:
    arguments = {"to": "x", "moves": [{"from": "a"}, {"./secrets/key": "b"}]}
    called = PermissionQuery(tool="move", argument="x", texts=tuple(collect_argument_texts(arguments)))
    assert decision(called, "deny move(secrets/*)") is not None


@pytest.mark.parametrize(
    ("path", "pattern", "let"),
    [
        ("src/a.py", "src/*", True),
        ("src/../secrets/a", "src/*", False),
        ("src/../../etc/passwd", "*src/*", False),
        ("./a/../../etc/passwd", "./*", False),
        ("/etc/passwd", "./*", False),
        ("./src/a.py", "./src/*", True),
        ("my/src/a.py", "src/*", False),
        ("src/a.py.exe", "src/*.py", False),
        ("src/../a", "src/../a", True),
        ("src/", "src/*", True),
        ("", "*", True),
        ("https://example.com/a/b", "https://example.com/*", True),
        ("https://example.com/../other", "https://example.com/*", False),
    ],
)
def test_a_permission_has_to_fit_a_path_in_all_its_spellings(path: str, pattern: str, let: bool) -> None:
    line = f"allow write_file({pattern})"
    assert decision(on(path), line) == (line if let else None)


@pytest.mark.parametrize(
    "hidden",
    [
        "git push",
        "git push -f origin",
        "  git   push\t-f",
        "cd x && git push -f",
        "cd x; git push",
        "cd x;git push;ls",
        "cd x || git push",
        "cd x | git push",
        "sleep 1 & git push",
        "ls\ngit push",
        "echo $(git push)",
        'echo "$(git push)"',
        "echo `git push`",
        "(git push)",
        "( cd x && ( git push ) )",
        "{ git push; }",
        "f() { git push; }; f",
        "cat <(git push)",
        "A=1 git push",
        "A=1 B='x' git push",
        "sudo git push",
        "sudo -u root -n git push",
        "env A=1 git push",
        "env -i PATH=/bin git push",
        "/usr/bin/git push",
        "./git push",
        "sudo /usr/bin/env A=1 /usr/bin/git push",
        "timeout 30s git push",
        "nice -n 10 git push",
        "xargs -n 1 git push",
        "time -p git push",
        "bash -c 'git push -f'",
        'sh -c "cd x && git push"',
        'eval "git push"',
        'git "push" -f',
        "g\\it push",
        "'git' pu''sh",
        "git \\\n  push",
        "# a comment \\\ngit push",
        ">log git push",
        "2> log git push",
        "if git push; then ls; fi",
        "if true; then git push; fi",
        "while ! git push; do ls; done",
        "for x in a; do git push; done",
        "exec git push",
        'GIT_SSH_COMMAND="ssh -i k" git push --force',
        "A=1 B='x; y' git push",
        'A=x\\ y sudo B+="$(date -u)" git push',
        "env 'A=x y' git push",
        "sudo -u 'me too' git push",
        "2>&1 git push",
        "&>log git push",
        ">|log git push",
        "<&3 git push",
        "find . -name '*.orig' -exec git push {} \\;",
        "find . -type d -execdir sudo git push +",
        "flock /tmp/lock git push",
        "flock -w 5 /tmp/lock -c 'git push'",
        "su -c 'git push'",
        "su - me -c 'git push'",
        "su me -c 'git push'",
        "runuser -u me -- git push",
        "chroot /srv git push",
        "uv run git push",
        "uv run --with x git push",
        "poetry run git push",
        "npx git push",
        "trap 'git push' EXIT",
        "coproc git push",
        "function f { git push; }; f",
    ],
)
@pytest.mark.parametrize("tool", ["shell", "bash"])
def test_a_denied_command_is_found_where_it_hides(hidden: str, tool: str) -> None:
    rule = f"deny {tool}(git push*)"
    assert decision(command(hidden, tool), f"allow {tool}", rule) == rule


@pytest.mark.parametrize(
    "harmless",
    [
        "git status",
        "git pull",
        "gitpush",
        "ls git; echo pushed",
        "grep 'git push' x",
        "push",
        'A="git push" ls',
        "find . -name git -exec echo push {} +",
        "flock push git pull",
    ],
)
def test_a_command_that_only_resembles_a_denied_one_is_not(harmless: str) -> None:
    assert decision(command(harmless), "deny shell(git push*)") is None


def test_a_denial_may_say_the_chain_or_the_wrapper_itself() -> None:
    assert decision(command("cd  x\t&& git push"), "deny shell(cd x && git*)") is not None
    assert decision(command("sudo ls"), "ask shell(sudo *)") is not None
    assert decision(command("git  push"), "deny shell(git   push)") is not None
    assert decision(command("cd x && find . -exec rm {} +"), "deny shell(find * -exec rm*)") is not None


WORDS = st.sampled_from(["git", "push", "-f", "rm -rf /", "a", '"b"', "'", "x=1", "ls *.py", "😀"])
LINKS = st.sampled_from([";", "&&", "||", "|", "&", "\n", " > ", "<", ">>", " `", "$(", "; ", " && "])


@given(
    st.lists(st.tuples(WORDS, LINKS), min_size=1, max_size=4),
    WORDS,
    st.sampled_from(["*", "git*", "*a", "git *;*", "ls*"]),
)
def test_no_permission_lets_a_chain_through_but_one_that_says_it(
    links: list[tuple[str, str]], last: str, pattern: str
) -> None:
    called = command("".join(itertools.chain.from_iterable(links)) + last)
    one = PermissionRule(decision="allow", pattern=ToolPattern(tool="shell", argument=pattern))
    assert decide([one], called) is None
    whole = PermissionRule(decision="allow", pattern=ToolPattern(tool="shell", argument=called.argument))
    anything = PermissionRule(decision="allow", pattern=ToolPattern(tool="shell"))
    assert decide([one, whole, anything], called) == whole
    assert decide([one, anything], called) == anything


def test_a_permission_lets_the_plain_command_through() -> None:
    assert decision(command("git log -3"), "allow shell(git log*)") == "allow shell(git log*)"
    assert decision(command("git log ${x}"), "allow shell(git log*)") is not None
    assert decision(command("sudo git log"), "allow shell(git log*)") is None
    assert decision(command("/tmp/git log"), "allow shell(git log*)") is None


few = st.sampled_from(["git push*", "git*", "*push*", ""])
lists = st.lists(
    st.builds(
        PermissionRule,
        decision=st.sampled_from(DECISIONS),
        pattern=st.builds(ToolPattern, tool=st.sampled_from(["shell", "sh*"]), argument=few),
        reason=st.sampled_from(["one", "two"]),
    ),
    max_size=6,
)


@given(lists, st.sampled_from(["git push -f", "git push"]), st.permutations(DECISIONS))
def test_a_decision_does_not_depend_on_the_order_of_the_kinds(
    made: list[PermissionRule], text: str, order: list[Decision]
) -> None:
    called = command(text)
    decided = decide(made, called)
    assert decide([rule for kind in order for rule in made if rule.decision == kind], called) == decided
    meant = [rule for rule in made if decide([rule], called)]
    strictest = (rule for kind in ("deny", "ask", "allow") for rule in meant if rule.decision == kind)
    assert decided == next(strictest, None)


def test_a_denial_comes_before_a_question_and_a_question_before_a_permission() -> None:
    lines = ["allow shell(git push)", "ask shell(git*)", "deny shell(*push)"]
    for given_lines in itertools.permutations(lines):
        assert decision(command("git push"), *given_lines) == "deny shell(*push)"
        assert decision(command("git pull"), *given_lines) == "ask shell(git*)"
    assert decision(command("git push"), *lines[:1]) == lines[0]
    assert decision(command("x"), "deny shell(a)", "deny *(x)", "deny shell") == "deny *(x)"


@given(json_values(), any_text(10))
def test_every_text_among_the_arguments_is_found(value: object, text: str) -> None:
    assert text in collect_argument_texts({"x": value, "y": [{"z": {"deep": [value, text]}}]})
    assert set(collect_argument_texts({"x": value})) <= set(collect_argument_texts([value]))


def test_the_texts_of_a_call_stand_in_their_order_and_at_any_depth() -> None:
    assert collect_argument_texts({"a": "1", "b": [{"c": "2"}, "3"], "d": 4, "e": None, "f": "5"}) == (
        "1",
        "c",
        "2",
        "3",
        "5",
    )
    deep: object = "found"
    for _ in range(5_000):
        deep = [deep]
    assert collect_argument_texts({"a": deep}) == ("found",)
    assert collect_argument_texts({}) == ()


HUGE = 200_000


@pytest.mark.parametrize(
    "text",
    [
        "a" * HUGE,
        "ab" * (HUGE // 2),
        "sudo -a " * (HUGE // 8),
        "a;" * (HUGE // 2),
        "(" * HUGE,
        "\\\n" * (HUGE // 2),
        "'" * HUGE,
        "A=1 " * (HUGE // 4),
        "../" * (HUGE // 3),
        " " * HUGE,
        ";".join(f"sudo -n {number}" for number in range(HUGE // 14)),
        'A=" ' * (HUGE // 4),
        "\\\"'" * (HUGE // 3),
        " -exec flock a" * (HUGE // 14),
        ">&" * (HUGE // 2),
    ],
    ids=lambda text: text[:8],
)
def test_a_huge_argument_is_decided(text: str) -> None:
    called = PermissionQuery(tool="shell", argument=text, texts=(text,))
    hard = "deny shell(*a*a*a*a*a*a*a*a*a*a*a*ab*c)"
    assert decision(called, hard, "deny shell(never*)", "allow shell") == "allow shell"
    assert decision(PermissionQuery(tool="x", argument=text, texts=(text,)), hard.replace("shell", "x")) is None
