"""Permission rules of a session, and the gate that decides on each tool call.

Plan mode is checked first, then the rules of the program, of the session and of memory. A rule about a path also
applies to the targets of symbolic links.

Invariant: if a rule that may forbid a call can't be read, no tool that acts is called.
"""

import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

import anyio
from anyio.to_thread import run_sync

from ricordo.agent.tool_calls import GateDecision, replace_surrogates
from ricordo.agent.tools import Approval, ApprovalHandler, Tool, ToolContext, get_effect
from ricordo.errors import FileMissing, InvalidSetting, RicordoError, StorageFailed
from ricordo.guard import has_secret
from ricordo.guard.permissions import (
    COMMAND_TOOLS,
    Decision,
    PermissionQuery,
    PermissionRule,
    ToolPattern,
    collect_argument_texts,
    decide,
    has_restriction,
    parse_pattern,
    parse_rule,
    render_rule,
)
from ricordo.lazy import dataclass
from ricordo.messages import JsonValue, ToolSpec
from ricordo.storage import FileInfo, FileStore
from ricordo.workspace.agent_state import PlanState, WorkState, WorkStateHolder
from ricordo.workspace.entry import Entry, parse_memory_rule
from ricordo.workspace.entry_codec import RULE_FIELD_START, LocatedEntry, parse_entries, preview_line
from ricordo.workspace.layout import LEDGERS, MEMORY_PATH, is_memory

__all__ = ["ListsRuleSources", "MemoryRules", "PathResolver", "Permissions", "RuleGate", "RuleSource", "describe_call"]


_MAX_TRIES = 5


class RuleSource(Protocol):
    """A place of memories with rules: its `files`, under a unique `label`."""

    @property
    def label(self) -> str:
        """The unique name of the place."""
        ...

    @property
    def files(self) -> FileStore:
        """The files with its documents."""
        ...


class ListsRuleSources(Protocol):
    """Provides places with rules; `LayeredMemory` is one."""

    async def places(self) -> Sequence[RuleSource]:
        """Return the visible places, narrowest first."""
        ...


@dataclass(frozen=True, kw_only=True)
class _SourceRules:
    """The documents of one place as listed, and the rules of each by path."""

    listing: tuple[FileInfo, ...] = ()
    rules: Mapping[str, tuple[PermissionRule, ...]] = field(default_factory=dict)


class MemoryRules:
    """Reads the rules from memories in the places of one scope."""

    def __init__(self, layers: ListsRuleSources) -> None:
        """Read the places of `layers`; a document is read again only if its size or modification time changed."""
        self._layers = layers
        self._cache: dict[str, _SourceRules] = {}

    async def __call__(self) -> tuple[PermissionRule, ...]:
        """Return the rules of all visible places, narrowest place first, each memory's rule once.

        `why` is the first line of the memory, `source` is `memory <id>`. Raises: StorageError if a document or folder
        of memory exists but can't be read, because its rules are then unknown.
        """
        places = await self._layers.places()
        return _deduplicate([rule for place in places for rule in await self._read_rules(place)])

    async def _read_rules(self, place: RuleSource) -> list[PermissionRule]:
        """Return the rules of one place, those of MEMORY.md first, then by path."""
        cached = self._cache.get(place.label, _SourceRules())
        for _ in range(_MAX_TRIES):
            # List again after reading, so that a document that is being moved is not missed.
            listing = await _list_documents(place.files)
            if cached.listing == listing:
                break
            cached = await _read_changed(place.files, listing, cached)
        self._cache[place.label] = cached
        return [rule for info in cached.listing for rule in cached.rules[info.path]]


async def _list_documents(files: FileStore) -> tuple[FileInfo, ...]:
    """Return the documents that can hold entries, MEMORY.md first."""
    memory = await files.info(MEMORY_PATH)
    infos = [info for info in await files.list(LEDGERS) if is_memory(info.path)]
    # The file of a long entry is only its content: text in it that looks like a rule is not one.
    entries = [info for info in infos if not info.path.startswith(f"{LEDGERS}/long/")]
    return (*([memory] if memory else []), *entries)


async def _read_changed(files: FileStore, listing: Sequence[FileInfo], previous: _SourceRules) -> _SourceRules:
    """Return the rules in the documents of `listing`; documents unchanged since `previous` are not read again."""
    unreadable = await files.list_unreadable(LEDGERS)
    if unreadable:
        raise StorageFailed(f"The folder {unreadable[0]} can't be read, so the rules in it are not known.")
    unchanged = set(previous.listing)
    rules: dict[str, tuple[PermissionRule, ...]] = {}
    for info in listing:
        if info in unchanged:
            rules[info.path] = previous.rules[info.path]
            continue
        try:
            data = (await files.read(info.path)).data
        except FileMissing:
            data = b""
        rules[info.path] = await run_sync(_parse_rules, info.path, data)
    return _SourceRules(listing=tuple(listing), rules=rules)


def _parse_rules(path: str, data: bytes) -> tuple[PermissionRule, ...]:
    if RULE_FIELD_START not in data:
        return ()
    located_entries = parse_entries(data, path, only=lambda bullet: RULE_FIELD_START in bullet)
    if not all(_has_own_id(one, data) for one in located_entries):
        # The id of a bullet without its own depends on all bullets before it.
        located_entries = parse_entries(data, path)
    return tuple(_to_rule(one.entry, one.entry.rule) for one in located_entries if one.entry.rule and one.entry.is_rule)


def _has_own_id(located: LocatedEntry, data: bytes) -> bool:
    return f"^{located.entry.id}".encode() in data[located.offset : located.offset + located.length]


def _to_rule(entry: Entry, text: str) -> PermissionRule:
    return parse_memory_rule(text, why=preview_line(entry.content), source=f"memory {entry.id}")


def _deduplicate(rules: Iterable[PermissionRule]) -> tuple[PermissionRule, ...]:
    unique: dict[PermissionRule, PermissionRule] = {}
    for rule in rules:
        unique.setdefault(replace(rule, reason=""), rule)
    return tuple(unique.values())


_LOG = logging.getLogger("ricordo.agent")
_TARGET_ARGUMENTS = frozenset({"command", "path", "file_path", "url", "query", "pattern"})
_SHELL = "shell"
"""A tool whose own question would show the same as the gate's; other tools show more, such as a diff."""
_INLINE_CHARS = 20_000
"""Characters up to which a call is decided on directly; a longer call is decided on in a thread."""
_LoadRules = Callable[[], Awaitable[Sequence[PermissionRule]]]
_ResolvePaths = Callable[[Sequence[str]], Awaitable[Sequence[str]]]


class RuleGate:
    """A `PermissionGate` that decides by plan mode, then by rules."""

    def __init__(
        self,
        load_work_state: Callable[[], WorkState],
        *,
        configured: Sequence[PermissionRule] = (),
        load_remembered: _LoadRules | None = None,
        approve: ApprovalHandler | None = None,
        resolve_paths: _ResolvePaths | None = None,
    ) -> None:
        """Decide by the state from `load_work_state` at each call, by the rules `configured`, and by the rules in
        memory.

        A rule that asks calls `approve`, one question at a time; without `approve` the call is refused. `resolve_paths`
        returns the targets of the paths among texts, for rules that deny or ask.
        """
        self._standing = load_work_state
        self._configured_rules = tuple(configured)
        self._load_rules = load_remembered
        self._approve = approve
        self._resolve_paths = resolve_paths
        self._approval_lock = anyio.Lock()

    async def __call__(self, tool: Tool, arguments: Mapping[str, JsonValue], context: ToolContext) -> GateDecision:
        """Decide on a call: plan mode refuses tools that act; then rules that deny, ask or allow, in this order.

        Among rules of one kind the first one decides: given rules, then the session's, then those in memory. Raises the
        errors of `approve`.
        """
        del context
        query = describe_call(tool.spec, arguments)
        decision = await self._find_decision(tool, query)
        if isinstance(decision, GateDecision):
            return decision
        async with self._approval_lock:
            # The answer to the previous question may have added a rule that decides this call.
            decision = await self._find_decision(tool, query)
            return (
                decision if isinstance(decision, GateDecision) else await self._ask_person(decision, query, arguments)
            )

    async def allows(self, tool: Tool, arguments: Mapping[str, JsonValue]) -> bool:
        """Return whether a call may run without asking anybody."""
        decision = await self._find_decision(tool, describe_call(tool.spec, arguments))
        return isinstance(decision, GateDecision) and not decision.refusal

    async def _find_decision(self, tool: Tool, query: PermissionQuery) -> GateDecision | PermissionRule:
        """Return the decision, or the rule that requires asking a person."""
        work_state, acts = self._standing(), get_effect(tool) == "acts"
        if work_state.plan.active and acts:
            return GateDecision(refusal=_plan_mode_refusal(query.tool, work_state.plan))
        rules = (*self._configured_rules, *work_state.permissions)
        try:
            remembered = await self._load_rules() if self._load_rules else ()
        except RicordoError as error:
            if acts:
                return GateDecision(refusal=_unreadable_rules_refusal(query.tool, error))
            remembered = ()
        rules = (*rules, *remembered)
        rule = await _decide(rules, await self._add_resolved_paths(query, rules))
        if rule is not None and rule.decision == "ask":
            return rule
        if rule is not None and rule.decision == "deny":
            return GateDecision(
                refusal=f"{query.tool} was not run: {_quote_rule(rule)} forbids it.{_reason_suffix(rule)}"
            )
        return GateDecision(approved=rule is not None)

    async def _add_resolved_paths(self, query: PermissionQuery, rules: Sequence[PermissionRule]) -> PermissionQuery:
        """Return the call with the targets of its paths added to its texts, if a rule requires that."""
        if self._resolve_paths is None or query.tool in COMMAND_TOOLS or not has_restriction(rules, query.tool):
            return query
        return replace(query, texts=(*query.texts, *await self._resolve_paths(query.texts)))

    async def _ask_person(
        self, rule: PermissionRule, query: PermissionQuery, arguments: Mapping[str, JsonValue]
    ) -> GateDecision:
        if self._approve is None:
            return GateDecision(
                refusal=f"{query.tool} was not run: {_quote_rule(rule)} says that it needs a person's approval, and "
                f"there is nobody to ask.{_reason_suffix(rule)}"
            )
        approval = Approval(
            tool=query.tool,
            action="call",
            target=replace_surrogates(query.argument),
            change=_render_arguments(query.argument, arguments),
        )
        if not await self._approve(approval):
            return GateDecision(refusal=f"{query.tool} was not run: it was not approved.{_reason_suffix(rule)}")
        return GateDecision(approved=query.tool == _SHELL)


class Permissions:
    """The rules of one session, for people and programs. Each change is durable when its method returns."""

    def __init__(self, state_holder: WorkStateHolder, configured: Sequence[PermissionRule] = ()) -> None:
        """Manage the rules in `state_holder`; `configured` are the rules of the settings, which also apply."""
        self._keeper = state_holder
        self.configured_rules = tuple(configured)
        self._tool_names: frozenset[str] = frozenset()

    def set_tool_names(self, tools: Iterable[str], configured: Iterable[PermissionRule] = ()) -> None:
        """Set the names of all tools; a rule that names another tool is logged.

        The rules `configured` are checked now, each rule that is added later when it is added.
        """
        self._tool_names = frozenset(tools)
        for rule in configured:
            self._warn_of_unknown_tool(rule)

    def names_unknown_tool(self, rule: PermissionRule) -> bool:
        """Return whether a rule names, without a `*`, a tool that the agent does not have."""
        return bool(self._tool_names) and "*" not in rule.pattern.tool and rule.pattern.tool not in self._tool_names

    @property
    def rules(self) -> tuple[PermissionRule, ...]:
        """The rules of this session, oldest first."""
        return self._keeper.work_state.permissions

    async def allow(self, text: str, *, why: str = "") -> PermissionRule:
        """Allow calls without asking, such as `shell(git status)`. See `deny`."""
        return await self._add("allow", text, why)

    async def deny(self, text: str, *, why: str = "") -> PermissionRule:
        """Refuse calls, such as `shell(git push*)` or `write_file`; the model is told `why`.

        The rule replaces an earlier one with the same pattern. A rule for a tool that the agent does not have is saved
        and logged. Raises: InvalidSetting for an invalid pattern or one with a secret; StorageError, and then nothing
        has changed.
        """
        return await self._add("deny", text, why)

    async def ask(self, text: str, *, why: str = "") -> PermissionRule:
        """Ask a person before calls, such as `write_file(src/*)`. See `deny`."""
        return await self._add("ask", text, why)

    async def remove(self, text: str) -> bool:
        """Remove a rule, given as its line or its pattern; return whether there was one.

        Raises: InvalidSetting for a text that is neither; StorageError, and then nothing has changed.
        """
        decision, pattern = _parse_rule_or_pattern(text)

        def is_meant(rule: PermissionRule) -> bool:
            return rule.pattern == pattern and decision in {None, rule.decision}

        if not any(map(is_meant, self.rules)):
            return False
        await self._keeper.update_work_state(
            lambda work_state: _replace_rules(work_state, [r for r in work_state.permissions if not is_meant(r)])
        )
        return True

    async def _add(self, decision: Decision, text: str, why: str) -> PermissionRule:
        rule = PermissionRule(decision=decision, pattern=parse_pattern(text), reason=_check_reason(why), source="user")
        if has_secret(text) or has_secret(render_rule(rule)):
            raise InvalidSetting("A rule holds no secrets: with a mark in its place it would match other calls.")

        def change(work_state: WorkState) -> WorkState:
            others = [other for other in work_state.permissions if other.pattern != rule.pattern]
            return _replace_rules(work_state, [*others, rule])

        await self._keeper.update_work_state(change)
        self._warn_of_unknown_tool(rule)
        return rule

    def _warn_of_unknown_tool(self, rule: PermissionRule) -> None:
        if not self.names_unknown_tool(rule):
            return
        similar = get_close_matches(rule.pattern.tool, self._tool_names, n=1, cutoff=0.8)
        hint = f" Did you mean {similar[0]}?" if similar else ""
        _LOG.warning(
            "The rule `%s` decides nothing here: the agent has no tool of that name.%s", render_rule(rule), hint
        )


def describe_call(spec: ToolSpec, arguments: Mapping[str, JsonValue]) -> PermissionQuery:
    """Return a call as a query for rules.

    Its argument is the first text, in the order of the schema, among the arguments named command, path, file_path, url,
    query and pattern; otherwise the first text of all; empty if there is none.
    """
    fields = spec.parameters.get("properties")
    names = [*fields] if isinstance(fields, Mapping) else []
    order = dict.fromkeys((*names, *arguments))
    texts = {name: value for name in order if isinstance(value := arguments.get(name), str)}
    first = next((name for name in texts if name in _TARGET_ARGUMENTS), next(iter(texts), ""))
    return PermissionQuery(
        tool=spec.name, argument=texts.get(first, ""), texts=tuple(collect_argument_texts(arguments))
    )


def _parse_rule_or_pattern(text: str) -> tuple[Decision | None, ToolPattern]:
    try:
        rule = parse_rule(text)
    except InvalidSetting:
        return None, parse_pattern(text)
    return rule.decision, rule.pattern


def _check_reason(reason: object) -> str:
    if not isinstance(reason, str):
        raise InvalidSetting(f"Why a rule was made is a text, empty for no reason, not {reason!r}.")
    return reason


def _replace_rules(work_state: WorkState, rules: Sequence[PermissionRule]) -> WorkState:
    return replace(work_state, permissions=tuple(rules))


def _render_arguments(argument: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return all arguments as JSON for a person; empty if `argument` is the only one."""
    if [*arguments.values()] in ([argument], []):
        return ""
    return replace_surrogates(json.dumps(arguments, ensure_ascii=False, indent=2))


def _plan_mode_refusal(tool: str, plan: PlanState) -> str:
    target = f"the plan, /{plan.path}," if plan.path else "the plan"
    return (
        f"{tool} was not run: plan mode is on, and until it is left only what reads or plans can be called. Write "
        f"what is to be done into {target} and leave plan mode with `plan_exit`."
    )


def _unreadable_rules_refusal(tool: str, error: RicordoError) -> str:
    return f"{tool} was not run: a rule in memory may forbid it, and the rules could not be read. {error}"


async def _decide(rules: Sequence[PermissionRule], query: PermissionQuery) -> PermissionRule | None:
    if sum(map(len, query.texts)) <= _INLINE_CHARS:
        return decide(rules, query)
    return await run_sync(decide, rules, query)


def _quote_rule(rule: PermissionRule) -> str:
    return f"the rule `{render_rule(rule)}`"


def _reason_suffix(rule: PermissionRule) -> str:
    return f" Reason: {rule.reason}" if rule.reason else ""


_MAX_TEXT_CHARS, _MAX_PATH_CHARS = 100_000, 4_096
"""The maximum characters of a text that is checked, and of a normalized path."""


class PathResolver:
    """Resolves links in paths: a leading slash means the workspace or the disk, otherwise the folder."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        """Resolve paths relative to the working directory `folder` and to `workspace`."""
        self._folder = folder
        self._workspace = workspace

    async def __call__(self, texts: Sequence[str]) -> list[str]:
        """Return the real paths of those `texts` that are paths to another place than they say.

        Paths in the working directory are relative to it, paths in the workspace have a leading slash, and all others
        are absolute.
        """
        paths = [text for text in dict.fromkeys(texts) if _may_be_path(text)]
        return await run_sync(self._resolve_all, paths) if paths else []

    def _resolve_all(self, paths: Sequence[str]) -> list[str]:
        folder, workspace = os.path.realpath(self._folder), os.path.realpath(self._workspace)
        resolved: dict[str, None] = {}
        for path in paths:
            for start in (workspace, "/") if path.startswith("/") else (folder,):
                for real in _resolve(start, path.lstrip("/")):
                    resolved[_render_path(real, folder, workspace)] = None
        return [each for each in resolved if each not in paths]


def _resolve(start: str, path: str) -> list[str]:
    """Return the real paths of a path if they differ from it; `..` behind a link is resolved in both ways."""
    joined = f"{start}/{path}"
    normalized = os.path.normpath(joined)
    try:
        real = dict.fromkeys((os.path.realpath(joined), os.path.realpath(normalized)))
    except (OSError, ValueError):
        # A text that the system does not accept as a path leads nowhere.
        return []
    return [each for each in real if each != normalized or start == "/"]


def _render_path(real: str, folder: str, workspace: str) -> str:
    for start, slash in ((workspace, "/"), (folder, "")):
        if real == start:
            return slash or "."
        if real.startswith(f"{start.rstrip(os.sep)}{os.sep}"):
            return slash + os.path.relpath(real, start)
    return real


def _may_be_path(text: str) -> bool:
    return 0 < len(text) <= _MAX_TEXT_CHARS and "\0" not in text and len(os.path.normpath(text)) <= _MAX_PATH_CHARS
