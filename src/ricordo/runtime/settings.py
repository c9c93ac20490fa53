"""Settings: the person's config.toml, the root's, the environment, then arguments; the later one wins.

Nothing else reads the environment. The config.toml of a root may have come with a folder of somebody else, so it can't
say where memory lies, where a model is reached, or what may be called without asking. The address of a model serves
other models of its provider; for any other model it is an error that nobody said where it is reached.

Invariant: a setting is a field, checked when it is read; its value and origin can be shown.
"""

import getpass
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path

import platformdirs

from ricordo.context.config import (
    ClearResultsConfig,
    CompactionConfig,
    DedupeReadsConfig,
    ToolResultEvictionConfig,
    TruncateArgsConfig,
)
from ricordo.context.preamble import DEFAULT_BUDGET
from ricordo.context.prompt import WORKSPACE_BUDGET
from ricordo.context.turn_recall import TurnRecallConfig
from ricordo.curation.config import (
    ConsolidationConfig,
    InjectionConfig,
    MaintenanceConfig,
    ProfileConfig,
    RetentionConfig,
)
from ricordo.errors import InvalidSetting
from ricordo.extraction.config import FlushConfig
from ricordo.extraction.signal_patterns import load_detector
from ricordo.guard.permissions import PermissionRule, parse_rule
from ricordo.jobs import InboxConfig
from ricordo.language.signals import SignalDetector, default_detector
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.contract import get_base_url
from ricordo.models.offline import OFFLINE
from ricordo.models.provider import provider_name
from ricordo.models.spending import SpendingConfig
from ricordo.runtime.config_file import ConfigFile, read_config
from ricordo.runtime.setting_layers import (
    SettingLayers,
    SettingOrigin,
    SettingValue,
    list_setting_tables,
    list_setting_types,
    suggest_name,
)
from ricordo.runtime.trust import TRUST_ALL, check_trust, is_vouched_for
from ricordo.search.recall import DEFAULT_OPENING_MEMORIES
from ricordo.stores.addresses import parse_address
from ricordo.workspace.history.retention import HistoryConfig

__all__ = [
    "MACHINE_SETTINGS",
    "OPT_IN_TOOLS",
    "Settings",
    "check_endpoint_owner",
    "environment_variable",
    "resolve_endpoint",
]

OPT_IN_TOOLS = ("forget", "memory")
"""The names of the tools that an agent gets only if they are asked for."""


def resolve_endpoint(
    name: str, *, variable: str, own: str | None, base_url: str | None, owner: str | None, agent: ChatModel | None
) -> str | None:
    """Return the address of the model `name`, None for that of its provider.

    `own` is the address that was given for it, which `variable` of the environment gives too, empty where none does.
    `base_url` is the address that was given for `owner`, the model that the settings name; without that name it belongs
    to `agent`, the agent's model.

    Raises: InvalidSetting if the agent's model has an address and nobody said whether this model is reached there.
    """
    agents = get_base_url(agent)
    if own is not None or (base_url is None and agents is None):
        return own
    held = owner if owner not in {None, OFFLINE} else agent.name if agent else ""
    if base_url is not None and agents in {None, base_url} and provider_name(held) == provider_name(name):
        return base_url
    whose = f"the address of {held}" if held else "an address, but no model that it belongs to"
    told = f"set {variable}, or give " if variable else "give "
    raise InvalidSetting(
        f"It is not clear where {name} is reached, so it is not asked: the settings hold {whose}. To say where it is,"
        f" {told}a model made by load_model({name!r}, base_url=...)."
    )


def check_endpoint_owner(owner: object, name: object, *, base_url: object) -> None:
    """Refuse the model `name` in place of `owner` of another provider, for which `base_url` was given.

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
    {"base_url", "cache", "data", "embedder_base_url", "index", "permissions", "root", "trust", "user"}
)
"""Settings that a root's config.toml can't give: they say where memory lies, whose it is, who is sent a key, and what
may be called unasked. So do the settings `base_url` of its tables."""
_PERSONAL_SETTINGS = frozenset({"permissions"})
"""Those of them that the person's own config.toml can give."""
_PREFIX = "RICORDO_"
_NESTED = "__"
_PRESETS: Mapping[str, Mapping[str, Callable[[], object]]] = {
    "compaction": {"classic": CompactionConfig.classic, "dynamic": CompactionConfig.dynamic},
    "tool_result_eviction": {"defaults": ToolResultEvictionConfig.defaults},
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What holds where the caller of a function does not say otherwise.

    `root` (RICORDO_ROOT) is the root to use instead of the one found from the working directory. `user`
    (RICORDO_USER) names the user, by default the login name. `data` (RICORDO_DATA) holds the users' own roots,
    `cache` (RICORDO_CACHE) the indexes of roots that can't be written to. `index` (RICORDO_INDEX) is a folder for the
    indexes of all roots, one below it for each; without it an index lies in its root, beside the workspace. `trust`
    (RICORDO_TRUST) vouches for roots that are not on the list in `data`: those at or below these absolute paths, or
    every root with `1`. `permissions` are rules for the tool calls of every agent, such as `allow shell(git status)`.

    `store` (RICORDO_STORE) is the address of the store that an agent remembers with: `layered` is the memory of its
    root, and `none` is no memory. A relative place is one below the root where config.toml names it, and is not outside
    of the folder that holds the root; else one below the working directory. `opt_in_tools` are the tools of memory that
    a model has only where they are named: `forget`, and `memory`, which keeps notes of its own.

    `embedder` (RICORDO_EMBEDDER) makes memory be found by meaning too: `static`, `minilm`, `hashing` or
    provider:model,
    `auto` for `static` where it is installed; with None it is found by words alone. `embedder_base_url`
    (RICORDO_EMBEDDER_BASE_URL) is where it is reached. `reranker` (RICORDO_RERANKER) names
    one that has a say in the order of the best, as an installed package offers it. From `ann_vectors` vectors on
    they are searched by an approximate index, where the extra `ann` is installed; 0 is never. With `usage`
    (RICORDO_USAGE) it is noted when a memory is shown, used and confirmed.

    `model` is the agent's model, None where none was named, `base_url` where it is reached, and `model_settings` what
    it is told where it is given by name. `compaction`,
    `tool_result_eviction`, `clear_results`, `dedupe_reads`, `truncate_args` and `consolidation` are off when None.
    So is `turn_recall`, which reminds each turn of a few memories, but for a recommended agent, where None is its
    default. All that is put into the prompt beside the agent's own instructions has at most `workspace_tokens`
    tokens, the preamble among it at most `preamble_tokens`, and the profile as much as `injection` says, which shows
    none when it is None; up to `recalled_memories` of the rest of memory join it
    that have to do with the first message. A turn has at most `max_iters` requests to the model. `flush` says when and
    how what was said is extracted, and with None nothing is. `signal_patterns` is a directory whose patterns replace
    the built-in ones by which signals, such as a correction, are recognised; it is read when this is made. `inbox` says
    how long what was said waits until it is learned from. `origins` says for
    each setting that is not at its default, by dotted key, where its value came from.
    """

    root: Path | None
    user: str
    data: Path
    cache: Path
    index: Path | None = None
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
    preamble_tokens: int = DEFAULT_BUDGET.count
    recalled_memories: int = DEFAULT_OPENING_MEMORIES
    compaction: CompactionConfig | None = None
    tool_result_eviction: ToolResultEvictionConfig | None = None
    clear_results: ClearResultsConfig | None = None
    dedupe_reads: DedupeReadsConfig | None = None
    truncate_args: TruncateArgsConfig | None = None
    turn_recall: TurnRecallConfig | None = None
    consolidation: ConsolidationConfig | None = field(default_factory=ConsolidationConfig)
    profile: ProfileConfig | None = field(default_factory=ProfileConfig)
    injection: InjectionConfig | None = field(default_factory=InjectionConfig)
    flush: FlushConfig | None = field(default_factory=FlushConfig)
    inbox: InboxConfig = field(default_factory=InboxConfig)
    maintenance: MaintenanceConfig = field(default_factory=MaintenanceConfig)
    retention: RetentionConfig = field(default_factory=RetentionConfig)
    history: HistoryConfig = field(default_factory=HistoryConfig)
    spending: SpendingConfig = field(default_factory=SpendingConfig)
    origins: Mapping[str, SettingOrigin] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Refuse a blank model or address, no request at all, and a preamble of less than nothing."""
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
        for table in ("flush", "consolidation", "compaction"):
            config = getattr(self, table)
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
        """The `permissions` as rules. Raises: InvalidSetting for a line that is none."""
        return tuple(parse_rule(each, source="settings") for each in self.permissions)

    @cached_property
    def signal_detector(self) -> SignalDetector:
        """What recognises signals, such as a correction. Raises: InvalidSetting for a file that can't be used."""
        return default_detector() if self.signal_patterns is None else load_detector(self.signal_patterns)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """Return where memory lives, whose it is and where models are reached by `environment` (the process's own).

        The rest is at its defaults.
        """
        given = os.environ if environment is None else environment
        root, index = given.get("RICORDO_ROOT"), given.get("RICORDO_INDEX")
        trust = given.get("RICORDO_TRUST", "").split(",")
        return cls(
            root=Path(root) if root else None,
            user=given.get("RICORDO_USER") or _login_name(),
            data=Path(given.get("RICORDO_DATA") or platformdirs.user_data_path("ricordo")),
            cache=Path(given.get("RICORDO_CACHE") or platformdirs.user_cache_path("ricordo")),
            index=Path(index) if index else None,
            trust=tuple(each.strip() for each in trust if each.strip()),
            model=given.get("RICORDO_MODEL") or None,
            base_url=given.get("RICORDO_BASE_URL") or None,
            embedder_base_url=given.get("RICORDO_EMBEDDER_BASE_URL") or None,
            origins={
                name: SettingOrigin(kind="environment", name=environment_variable(name))
                for name in (
                    "root",
                    "user",
                    "data",
                    "cache",
                    "index",
                    "trust",
                    "model",
                    "base_url",
                    "embedder_base_url",
                )
                if given.get(environment_variable(name))
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
        """Return the settings of `root`: the person's config.toml and its own, then `environment`, then `arguments`.

        `environment` is by default the process's own. `arguments` go by dotted key, such as
        `compaction.trigger_messages`, or hold a whole configuration; None means not given. `own` says whether the
        person's file is read, by default where a `root` is named; without both no file is. It reads the disk: call it
        from a thread where others wait. `trusted` vouches for the root.

        Raises: RootNotTrusted; InvalidSetting, naming the file and line, the variable or the argument; DocumentInvalid
        for a file that is no TOML; StorageFailed for one that can't be read.
        """
        surroundings = os.environ if environment is None else environment
        layers = SettingLayers(owner=cls, presets=_PRESETS)
        held = _bootstrap_settings(surroundings, arguments or {})
        if own or (own is None and root is not None):
            layers.add_layer(_values_from_file(read_config(held.data), own=True))
        if root is not None:
            (held.with_trusted_root(root) if trusted else held).check_trust(root)
            layers.add_layer(_values_from_file(read_config(root)))
        layers.add_layer(_values_from_environment(surroundings))
        before = layers.values()
        layers.add_layer(_values_from_arguments(arguments or {}))
        standard = cls.from_environment({})
        places = {each.name: getattr(standard, each.name) for each in fields(cls) if _is_location(each.name)}
        values = places | layers.values()
        if values.get("base_url") == before.get("base_url"):
            check_endpoint_owner(before.get("model"), values.get("model"), base_url=before.get("base_url"))
        loaded = layers.call_with_origins("", lambda: cls(**{**values, "origins": layers.origins()}))
        return loaded.with_trusted_root(root) if trusted and root is not None else loaded

    def with_trusted_root(self, root: Path) -> "Settings":
        """Return these with the word of a program that `root` may be used."""
        return replace(self, trust=(*self.trust, os.path.realpath(root)))

    def check_trust(self, root: Path) -> None:
        """Return when `root` may be used, or is not made yet. It blocks on the disk. Raises: RootNotTrusted."""
        check_trust(root, data=self.data, vouched=is_vouched_for(self.trust, root))

    def resolve_address(
        self, name: str, *, setting: str, own: str | None, agent: ChatModel | None = None
    ) -> str | None:
        """Return where the model `name` is reached, None for its provider's own address.

        `setting` is the one that names it, empty for none; `own` is the address that was given for it, and `agent` the
        model of the agent, where there is one. Raises: InvalidSetting where that is not clear.
        """
        variable = environment_variable(setting) if setting else ""
        return resolve_endpoint(name, variable=variable, own=own, base_url=self.base_url, owner=self.model, agent=agent)

    def with_model(self, name: str) -> "Settings":
        """Return these for an agent of the model `name`. Raises: InvalidSetting if `base_url` is another provider's."""
        check_endpoint_owner(self.model, name, base_url=self.base_url)
        return replace(self, model=name)

    def with_default_embedder(self) -> "Settings":
        """Return these with `auto` for the embedder, where nobody named one and nobody said that there is none."""
        is_said = self.embedder is not None or "embedder" in self.origins
        return self if is_said else replace(self, embedder="auto")


def environment_variable(key: str) -> str:
    """Return the environment variable that gives the setting with this dotted key."""
    return f"{_PREFIX}{key.replace('.', _NESTED).upper()}"


def _is_location(name: str) -> bool:
    return name in {"root", "user", "data", "cache", "index"}


def _bootstrap_settings(environment: Mapping[str, str], arguments: Mapping[str, object]) -> Settings:
    """Return what is known before any file is read: where the person's own data lies, and which roots to trust."""
    names = ("RICORDO_DATA", "RICORDO_TRUST")
    held = Settings.from_environment({name: environment[name] for name in names if name in environment})
    data = arguments.get("data")
    return replace(held, data=data) if isinstance(data, Path) else held


def _values_from_file(config: ConfigFile, *, own: bool = False) -> list[SettingValue]:
    """Return what a config.toml says; the person's `own` may say more than that of a root."""
    given = []
    for key, value in config.values.items():
        origin = SettingOrigin(kind="file", name=str(config.path), line=config.line_of(key))
        if own and key in _PERSONAL_SETTINGS:
            if not _is_owned_by_user(config.path):
                raise InvalidSetting(f"{origin}: {key} is not used, as others can write this file: make it your own.")
            given.append(SettingValue(key=key, value=value, origin=origin))
            continue
        if key.partition(".")[0] in MACHINE_SETTINGS or key.rpartition(".")[2] == "base_url":
            raise InvalidSetting(
                f"{origin}: {key} can't be set in a file that may come with a folder: set {environment_variable(key)}"
                f"{', or write it into your own config.toml' if key in _PERSONAL_SETTINGS else ''}."
            )
        if key.rpartition(".")[2] in {"model", "embedder"} and isinstance(value, str) and "://" in value:
            raise InvalidSetting(f"{origin}: {key} names a model; where it is reached is said by RICORDO_BASE_URL.")
        given.append(SettingValue(key=key, value=value, origin=origin))
    return given


def _values_from_environment(environment: Mapping[str, str]) -> list[SettingValue]:
    """Return what the environment says; a variable that is none of ours is passed over unless it names a table."""
    known = {environment_variable(key): key for key in (*list_setting_types(Settings), *list_setting_tables(Settings))}
    tables = tuple(f"{environment_variable(key)}{_NESTED}" for key in list_setting_tables(Settings))
    given = []
    for name, value in environment.items():
        if name in known and value:
            origin = SettingOrigin(kind="environment", name=name)
            given.append(SettingValue(key=known[name], value=value, origin=origin, is_text=True))
        elif name not in known and name.startswith(tables):
            raise InvalidSetting(f"{name}: no setting has this variable{suggest_name(name, known)}")
    return given


def _values_from_arguments(arguments: Mapping[str, object]) -> list[SettingValue]:
    origin = SettingOrigin(kind="argument")
    return [SettingValue(key=key, value=value, origin=origin) for key, value in arguments.items() if value is not None]


def _is_owned_by_user(path: Path) -> bool:
    """Tell whether nobody but this user can write a file."""
    if not hasattr(os, "geteuid"):
        return True
    found = path.stat()
    return found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "user"
