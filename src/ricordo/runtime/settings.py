"""Settings from the user's config.toml, the root's config.toml, the environment and arguments; the later one wins.

Nothing else reads the environment. The config.toml of a root may have come with another person's files, so it can't set
where memory is stored, where a model is reached, or what may be called without asking. A configured model address also
serves other models of the same provider; for a model of another provider a missing address is an error.

Invariant: a setting is a field, checked when it is read; its value and origin can be shown, secrets only hidden.
"""

import getpass
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, fields, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from ricordo import models
from ricordo.context.config import (
    PREAMBLE_BUDGET,
    WORKSPACE_BUDGET,
    CompactionConfig,
    HooksConfig,
    ToolResultEvictionConfig,
    TurnRecallConfig,
)
from ricordo.context.strategies import Reductions, check_reductions
from ricordo.curation.config import (
    ConsolidationConfig,
    InjectionConfig,
    MaintenanceConfig,
    ProfileConfig,
    RetentionConfig,
)
from ricordo.errors import InvalidSetting
from ricordo.extraction.config import FlushConfig
from ricordo.guard import has_secret
from ricordo.guard.permissions import PermissionRule, parse_rule
from ricordo.jobs import InboxConfig
from ricordo.lazy import dataclass
from ricordo.messages.tokens import Share, Tokens
from ricordo.models.config import OFFLINE, ModelSettings, SpendingConfig, provider_name
from ricordo.runtime.config_file import ConfigFile, is_secret_name, read_config
from ricordo.runtime.setting_layers import (
    SettingLayers,
    SettingOrigin,
    SettingValue,
    format_duration,
    list_setting_groups,
    list_setting_tables,
    list_setting_types,
    suggest_name,
)
from ricordo.runtime.trust import TRUST_ALL, check_trust, is_vouched_for
from ricordo.search.config import DEFAULT_OPENING_MEMORIES, DecayConfig
from ricordo.stores.addresses import parse_address
from ricordo.workspace.history.audit import AuditConfig
from ricordo.workspace.history.change_sets import HistoryConfig

if TYPE_CHECKING:
    from ricordo.language.acts import SignalDetector
    from ricordo.messages.types import JsonValue
    from ricordo.models import ChatModel

__all__ = [
    "HIDDEN_VALUE",
    "MACHINE_SETTINGS",
    "OPT_IN_TOOLS",
    "SettingRow",
    "Settings",
    "check_endpoint_owner",
    "environment_variable",
    "list_settings",
    "resolve_endpoint",
]

OPT_IN_TOOLS = ("forget", "memory")
"""The names of the tools that an agent has only if the setting `opt_in_tools` names them."""


def resolve_endpoint(
    name: str, *, variable: str, own: str | None, base_url: str | None, owner: str | None, agent: "ChatModel | None"
) -> str | None:
    """Return the address of the model `name`, or None for its provider's default address.

    `own` is the address given for this model, which `variable` of the environment can set too; `variable` is empty if
    none does. `base_url` is the address given for `owner`, the model that the settings name; without an `owner` it
    belongs to `agent`, the agent's model.

    Raises: InvalidSetting if the agent's model has an address and nothing says whether this model is reached there.
    """
    agents = models.get_base_url(agent) if agent else None
    if own is not None or (base_url is None and agents is None):
        return own
    owner_name = owner if owner not in {None, OFFLINE} else agent.name if agent else ""
    if base_url is not None and agents in {None, base_url} and provider_name(owner_name) == provider_name(name):
        return base_url
    whose = f"the address of {owner_name}" if owner_name else "an address, but no model that it belongs to"
    remedy = f"set {variable}, or give " if variable else "give "
    raise InvalidSetting(
        f"It is not clear where {name} is reached, so it is not asked: the settings hold {whose}. To say where it is,"
        f" {remedy}a model made by load_model({name!r}, base_url=...)."
    )


def check_endpoint_owner(owner: object, name: object, *, base_url: object) -> None:
    """Refuse to replace `owner` by the model `name` of another provider if `base_url` was given for `owner`.

    Raises: InvalidSetting.
    """
    if base_url is None or not isinstance(owner, str) or not isinstance(name, str) or OFFLINE in {owner, name}:
        return
    if provider_name(owner) != provider_name(name):
        raise InvalidSetting(
            f"It is not clear where {name} is reached, so it is not asked: base_url was given for {owner}. Set"
            f" RICORDO_BASE_URL to the address of {name}, or leave it out."
        )


MACHINE_SETTINGS = frozenset(
    {
        "base_url",
        "cache",
        "data",
        "embedder_base_url",
        "hooks.worker",
        "index",
        "permissions",
        "root",
        "team",
        "trust",
        "user",
        "worktrees",
    }
)
"""Settings that a root's config.toml can't set: they decide where memory and API keys go and what runs unasked.

It can't set `base_url` in any of its tables either.
"""
_PERSONAL_SETTINGS = frozenset({"hooks.worker", "permissions"})
"""The machine settings that the user's own config.toml can set."""
_PREFIX = "RICORDO_"
_NESTED = "__"
_PRESETS: Mapping[str, Mapping[str, Callable[[], object]]] = {
    "compaction": {"classic": CompactionConfig.classic, "dynamic": CompactionConfig.dynamic},
    "tool_result_eviction": {"defaults": ToolResultEvictionConfig.defaults},
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The effective configuration, used wherever a caller passes no argument of its own.

    `root` (RICORDO_ROOT) is the root to use instead of the one found from the working directory. `user` (RICORDO_USER)
    names the user, by default the login name. `data` (RICORDO_DATA) holds the users' own roots, `cache` (RICORDO_CACHE)
    the indexes of read-only roots. `index` (RICORDO_INDEX) is a directory for the indexes of all roots, with one
    subdirectory for each; without it an index is stored in its root, next to the workspace. `team` (RICORDO_TEAM) is
    the directory of a team's memory, by default `.ricordo-team` beside the root. `worktrees` (RICORDO_WORKTREES) says
    whether the work trees of a git repository `share` one root, or each is `separate`. `trust` (RICORDO_TRUST) allows
    roots that are not on the list in `data`: those at or below these absolute paths, or every root with `1`.
    `permissions` are rules for the tool calls of every agent, such as `allow shell(git status)`.

    `store` (RICORDO_STORE) is the address of the store for an agent's memory: `layered` is the memory of its root, and
    `none` is no memory. A relative path in a config.toml is relative to the root and must stay inside the directory
    that holds the root; elsewhere it is relative to the working directory. `opt_in_tools` names memory tools that are
    off by default: `forget`, and `memory`, with which a model writes notes.

    `embedder` (RICORDO_EMBEDDER) adds search by meaning: `static`, `minilm`, `multilingual`, `hashing` or
    provider:model, or `auto` for `static` if it is installed; with None search uses words alone. `embedder_base_url`
    (RICORDO_EMBEDDER_BASE_URL) is its address. `reranker` (RICORDO_RERANKER) names a reranker of an installed package,
    which reorders the best hits. From `ann_vectors` vectors on, an approximate index is searched if the extra `ann` is
    installed; 0 turns it off.
    With `usage` (RICORDO_USAGE) it is recorded when an entry is shown, used and confirmed.

    `model` is the agent's model (None if unset), `base_url` its address, and `model_settings` its settings if it is
    given by name. `reductions` has the options of each reduction of the window that is set, None for off; the key of
    each has no name in front, such as `compaction.trigger_messages`. `consolidation` is off if None. So is
    `turn_recall`, which adds a few memories to each turn; for a recommended agent None means its default. Everything
    added to the prompt besides the agent's own instructions has at most `workspace_tokens` tokens. The preamble has at
    most `preamble_tokens` of these, and the profile as many as `injection` allows (None shows no profile); up to
    `recalled_memories` further entries related to the first message are added. A turn makes at most `max_iters`
    requests to the model. `flush` says when and how messages are extracted; with None nothing is extracted.
    `signal_patterns` is a directory of patterns that replace the built-in ones for recognising signals, such as a
    correction; it is read when this object is created. `inbox` says how long messages wait until they are learned from.
    `hooks` says what coding agents are given; with None (RICORDO_HOOKS=off) they are given nothing, and nothing is
    learned from them. `audit` says what the audit log records. `decay` says how memories fade. `origins` maps the
    dotted key of each setting that is not at its default to the source of its value.
    """

    root: Path | None
    user: str
    data: Path
    cache: Path
    index: Path | None = None
    team: Path | None = None
    worktrees: str = "share"
    trust: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()
    store: str = "layered"
    opt_in_tools: tuple[str, ...] = ()
    model: str | None = None
    base_url: str | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    embedder: str | None = None
    embedder_base_url: str | None = None
    reranker: str | None = None
    ann_vectors: int = 300_000
    signal_patterns: Path | None = None
    usage: bool = True
    max_iters: int = 10
    workspace_tokens: int = WORKSPACE_BUDGET.count
    preamble_tokens: int = PREAMBLE_BUDGET.count
    recalled_memories: int = DEFAULT_OPENING_MEMORIES
    reductions: Reductions = field(default_factory=Reductions)
    turn_recall: TurnRecallConfig | None = None
    hooks: HooksConfig | None = field(default_factory=HooksConfig)
    consolidation: ConsolidationConfig | None = field(default_factory=ConsolidationConfig)
    profile: ProfileConfig | None = field(default_factory=ProfileConfig)
    injection: InjectionConfig | None = field(default_factory=InjectionConfig)
    flush: FlushConfig | None = field(default_factory=FlushConfig)
    inbox: InboxConfig = field(default_factory=InboxConfig)
    maintenance: MaintenanceConfig = field(default_factory=MaintenanceConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    history: HistoryConfig = field(default_factory=HistoryConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    decay: DecayConfig = field(default_factory=DecayConfig)
    spending: SpendingConfig = field(default_factory=SpendingConfig)
    origins: Mapping[str, SettingOrigin] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse blank models and addresses, `max_iters` below 1, negative limits, and invalid paths or rules."""
        for name in ("model", "base_url", "embedder", "embedder_base_url", "reranker"):
            value = getattr(self, name)
            if value is not None and not value.strip():
                raise InvalidSetting(f"{name} is a text that is not blank, or left out.")
        try:
            parse_address(self.store)
        except InvalidSetting as error:
            raise InvalidSetting(f"store: {error}") from error
        if unknown := sorted({*self.opt_in_tools}.difference(OPT_IN_TOOLS)):
            raise InvalidSetting(f"opt_in_tools can be {', '.join(OPT_IN_TOOLS)}, not {', '.join(unknown)}.")
        object.__setattr__(self, "reductions", check_reductions(self.reductions))
        compaction = self.reductions.get("compaction")
        for table, config in (("flush", self.flush), ("consolidation", self.consolidation), ("compaction", compaction)):
            if self.model and config and isinstance(config.model, str) and config.model != OFFLINE:
                self.resolve_address(config.model, setting=f"{table}.base_url", own=config.base_url)
        _ = self.permission_rules
        if any(each != TRUST_ALL and not Path(each).is_absolute() for each in self.trust):
            raise InvalidSetting(f"trust holds absolute paths of folders, or {TRUST_ALL} for every root.")
        if self.max_iters < 1:
            raise InvalidSetting(f"max_iters is a whole number of at least 1, not {self.max_iters}.")
        for name in ("ann_vectors", "preamble_tokens", "recalled_memories", "workspace_tokens"):
            if getattr(self, name) < 0:
                raise InvalidSetting(f"{name} is a whole number of at least 0, not {getattr(self, name)}.")
        if self.signal_patterns is not None:
            _ = self.signal_detector

    @cached_property
    def permission_rules(self) -> tuple[PermissionRule, ...]:
        """The `permissions` as rules. Raises: InvalidSetting for a line that is not a rule."""
        return tuple(parse_rule(each, source="settings") for each in self.permissions)

    @cached_property
    def signal_detector(self) -> "SignalDetector":
        """The detector of signals, such as a correction. Raises: InvalidSetting for a file that can't be used."""
        from ricordo.extraction.preprocessing import load_detector
        from ricordo.language.acts import default_detector

        return default_detector() if self.signal_patterns is None else load_detector(self.signal_patterns)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """Return the settings for storage, owner and model addresses from `environment` (by default the process's own).

        All other settings have their defaults.
        """
        variables = os.environ if environment is None else environment
        root, index = variables.get("RICORDO_ROOT"), variables.get("RICORDO_INDEX")
        trust = variables.get("RICORDO_TRUST", "").split(",")
        return cls(
            root=Path(root) if root else None,
            user=variables.get("RICORDO_USER") or _login_name(),
            data=Path(variables.get("RICORDO_DATA") or platformdirs.user_data_path("ricordo")),
            cache=Path(variables.get("RICORDO_CACHE") or platformdirs.user_cache_path("ricordo")),
            index=Path(index) if index else None,
            team=Path(variables["RICORDO_TEAM"]) if variables.get("RICORDO_TEAM") else None,
            worktrees=_check_worktrees(variables.get("RICORDO_WORKTREES") or "share"),
            trust=tuple(each.strip() for each in trust if each.strip()),
            model=variables.get("RICORDO_MODEL") or None,
            base_url=variables.get("RICORDO_BASE_URL") or None,
            embedder_base_url=variables.get("RICORDO_EMBEDDER_BASE_URL") or None,
            origins={
                name: SettingOrigin(kind="environment", name=environment_variable(name))
                for name in (
                    "root",
                    "user",
                    "data",
                    "cache",
                    "index",
                    "team",
                    "worktrees",
                    "trust",
                    "model",
                    "base_url",
                    "embedder_base_url",
                )
                if variables.get(environment_variable(name))
            },
        )

    @classmethod
    def load(
        cls,
        root: Path | None = None,
        environment: Mapping[str, str] | None = None,
        arguments: Mapping[str, object] | None = None,
        *,
        trusted: bool = False,
        own: bool | None = None,
    ) -> "Settings":
        """Return the settings from the user's config.toml, the root's, `environment` and `arguments`; later ones win.

        `environment` is by default the process's own. `arguments` are keyed by dotted key, such as
        `compaction.trigger_messages`, or hold a whole configuration; None means not given. `own` says whether the
        user's file is read, by default only if a `root` is given; without both no file is read. It blocks on the disk,
        so call it from a thread in async code. `trusted` marks the root as trusted.

        Raises: RootNotTrusted; InvalidSetting, which names the file and line, the variable or the argument;
        DocumentInvalid for a file that is not TOML; StorageFailed for a file that can't be read.
        """
        variables = os.environ if environment is None else environment
        layers = SettingLayers(owner=cls, presets=_PRESETS)
        bootstrap = _bootstrap_settings(variables, arguments or {})
        if own or (own is None and root is not None):
            layers.add_layer(_values_from_file(read_config(bootstrap.data), own=True))
        if root is not None:
            (bootstrap.with_trusted_root(root) if trusted else bootstrap).check_trust(root)
            layers.add_layer(_values_from_file(read_config(root)))
        layers.add_layer(_values_from_environment(variables))
        without_arguments = layers.values()
        layers.add_layer(_values_from_arguments(arguments or {}))
        defaults = cls.from_environment({})
        locations = {each.name: getattr(defaults, each.name) for each in fields(cls) if _is_location(each.name)}
        values = locations | layers.values()
        if values.get("base_url") == without_arguments.get("base_url"):
            check_endpoint_owner(
                without_arguments.get("model"), values.get("model"), base_url=without_arguments.get("base_url")
            )
        loaded = layers.call_with_origins("", lambda: cls(**{**values, "origins": layers.origins()}))
        return loaded.with_trusted_root(root) if trusted and root is not None else loaded

    def with_trusted_root(self, root: Path) -> "Settings":
        """Return a copy of these settings in which the caller marks `root` as trusted."""
        return replace(self, trust=(*self.trust, os.path.realpath(root)))

    def check_trust(self, root: Path) -> None:
        """Check that `root` may be used or does not exist yet. It blocks on the disk. Raises: RootNotTrusted."""
        check_trust(root, data=self.data, is_vouched=is_vouched_for(self.trust, root))

    def resolve_address(
        self, name: str, *, setting: str, own: str | None, agent: "ChatModel | None" = None
    ) -> str | None:
        """Return the address of the model `name`, or None for its provider's default address.

        `setting` is the setting that names the model, empty for none; `own` is the address given for this model, and
        `agent` the agent's model, if any. Raises: InvalidSetting if the address is not clear.
        """
        variable = environment_variable(setting) if setting else ""
        return resolve_endpoint(name, variable=variable, own=own, base_url=self.base_url, owner=self.model, agent=agent)

    def with_model(self, name: str) -> "Settings":
        """Return these settings for the agent model `name`. Raises: InvalidSetting if `base_url` does not fit it."""
        check_endpoint_owner(self.model, name, base_url=self.base_url)
        return replace(self, model=name)

    def with_default_embedder(self) -> "Settings":
        """Return these settings with the embedder `auto`, unless an embedder, or none, was configured explicitly."""
        is_configured = self.embedder is not None or "embedder" in self.origins
        return self if is_configured else replace(self, embedder="auto")


def environment_variable(key: str) -> str:
    """Return the environment variable that sets the setting with this dotted key."""
    return f"{_PREFIX}{key.replace('.', _NESTED).upper()}"


def _check_worktrees(value: str) -> str:
    if value not in {"share", "separate"}:
        raise InvalidSetting(f"RICORDO_WORKTREES is share or separate, not {value!r}.")
    return value


def _is_location(name: str) -> bool:
    return name in {"root", "user", "data", "cache", "index", "team"}


def _bootstrap_settings(environment: Mapping[str, str], arguments: Mapping[str, object]) -> Settings:
    """Return the settings known before any file is read: the user's data directory and the trusted roots."""
    names = ("RICORDO_DATA", "RICORDO_TRUST")
    settings = Settings.from_environment({name: environment[name] for name in names if name in environment})
    data = arguments.get("data")
    return replace(settings, data=data) if isinstance(data, Path) else settings


def _values_from_file(config: ConfigFile, *, own: bool = False) -> list[SettingValue]:
    """Return the values in a config.toml; the user's `own` file may set more than the file of a root."""
    values = []
    for key, value in config.values.items():
        origin = SettingOrigin(kind="file", name=str(config.path), line=config.line_of(key))
        if own and key in _PERSONAL_SETTINGS:
            if not _is_owned_by_user(config.path):
                raise InvalidSetting(f"{origin}: {key} is not used, as others can write this file: make it your own.")
            values.append(SettingValue(key=key, value=value, origin=origin))
            continue
        if {key, key.partition(".")[0]} & MACHINE_SETTINGS or key.rpartition(".")[2] == "base_url":
            raise InvalidSetting(
                f"{origin}: {key} can't be set in a file that may come with a folder: set {environment_variable(key)}"
                f"{', or write it into your own config.toml' if key in _PERSONAL_SETTINGS else ''}."
            )
        if key.rpartition(".")[2] in {"model", "embedder"} and isinstance(value, str) and "://" in value:
            raise InvalidSetting(f"{origin}: {key} names a model; where it is reached is said by RICORDO_BASE_URL.")
        values.append(SettingValue(key=key, value=value, origin=origin))
    return values


def _values_from_environment(environment: Mapping[str, str]) -> list[SettingValue]:
    """Return the values in the environment; an unknown variable is ignored unless it has the prefix of a table."""
    keys = {environment_variable(key): key for key in (*list_setting_types(Settings), *list_setting_tables(Settings))}
    tables = tuple(f"{environment_variable(key)}{_NESTED}" for key in list_setting_tables(Settings))
    values = []
    for name, value in environment.items():
        if name in keys and value:
            origin = SettingOrigin(kind="environment", name=name)
            values.append(SettingValue(key=keys[name], value=value, origin=origin, is_text=True))
        elif name not in keys and name.startswith(tables):
            raise InvalidSetting(f"{name}: no setting has this variable{suggest_name(name, keys)}")
    return values


def _values_from_arguments(arguments: Mapping[str, object]) -> list[SettingValue]:
    origin = SettingOrigin(kind="argument")
    return [SettingValue(key=key, value=value, origin=origin) for key, value in arguments.items() if value is not None]


def _is_owned_by_user(path: Path) -> bool:
    """Return whether no one but this user can write a file."""
    if not hasattr(os, "geteuid"):
        return True
    status = path.stat()
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "user"


HIDDEN_VALUE = "[hidden]"
"""The text shown instead of a secret."""


@dataclass(frozen=True, kw_only=True)
class SettingRow:
    """A setting: its dotted key, its value as JSON, its environment variable, and the origin of the value.

    A table has the value True or False for on or off. `is_off` says that its table is off: the value is then the one it
    would have.
    """

    key: str
    value: "JsonValue"
    variable: str
    origin: SettingOrigin
    is_table: bool = False
    is_off: bool = False


def list_settings(settings: Settings) -> list[SettingRow]:
    """Return every setting in the order of the fields, each table followed by its settings."""
    return list(_iter_rows(settings, Settings, "", settings.origins, is_off=False))


def _iter_rows(
    values: object, owner: type, prefix: str, origins: Mapping[str, SettingOrigin], *, is_off: bool
) -> Iterator[SettingRow]:
    types, tables = list_setting_types(owner), list_setting_tables(owner)
    for name, value in _list_values(values, owner):
        key = f"{prefix}{name}"
        if name in types:
            yield SettingRow(
                key=key,
                value=_mask_value(key, value),
                variable=environment_variable(key),
                origin=_find_origin(key, origins),
                is_off=is_off,
            )
        elif name in tables:
            is_table_off = is_off or value is None
            yield SettingRow(
                key=key,
                value=not is_table_off,
                variable=environment_variable(key),
                origin=_find_origin(key, origins),
                is_table=True,
                is_off=is_off,
            )
            table_values = tables[name].type() if value is None else value
            yield from _iter_rows(table_values, type(table_values), f"{key}.", origins, is_off=is_table_off)


def _list_values(values: object, owner: type) -> Iterator[tuple[str, object]]:
    """Yield the name and the value of each field, and of each item of a group; None for an item that is not set."""
    groups = list_setting_groups(owner)
    for each in fields(owner):
        value = getattr(values, each.name)
        if each.name in groups:
            yield from ((name, value.get(name)) for name in groups[each.name])
        else:
            yield each.name, value


def _find_origin(key: str, origins: Mapping[str, SettingOrigin]) -> SettingOrigin:
    """Return the origin of a value; for a table not set explicitly, that of the first setting that turned it on."""
    inner = (origin for each, origin in origins.items() if each.startswith(f"{key}."))
    return origins.get(key) or next(inner, SettingOrigin())


def _mask_value(key: str, value: object) -> "JsonValue":
    json_value = _to_json(value)
    texts = [json_value] if isinstance(json_value, str) else json_value if isinstance(json_value, list) else []
    is_secret = any(isinstance(each, str) and (has_secret(each) or has_secret(f'{key} = "{each}"')) for each in texts)
    return HIDDEN_VALUE if is_secret or (isinstance(json_value, str) and is_secret_name(key)) else json_value


def _to_json(value: object) -> "JsonValue":
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Share):
        return f"{value.part * 100:g}%"
    if isinstance(value, Tokens):
        return value.count
    if isinstance(value, timedelta | Path):
        return format_duration(value) if isinstance(value, timedelta) else str(value)
    if isinstance(value, frozenset | tuple):
        return [str(each) for each in (sorted(value) if isinstance(value, frozenset) else value)]
    # a value that only code can set, such as a model
    return type(value).__name__
