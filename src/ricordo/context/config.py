"""Configurations of the compaction strategies: when each one runs and how much it removes.

A plain number as a token limit is a count of tokens. A `Share` is a fraction of the model's window.

Invariant: every constructed configuration is valid. An invalid value raises `InvalidSetting` and names its field.
"""

import math
from collections.abc import Collection
from dataclasses import field, replace
from typing import TYPE_CHECKING

from ricordo.errors import InvalidSetting
from ricordo.lazy import dataclass
from ricordo.messages.tokens import Budget, Share, Tokens
from ricordo.models.config import ModelSettings, validate_model_name

if TYPE_CHECKING:
    from ricordo.models import ChatModel

__all__ = [
    "DEFAULT_EXCLUDED_TOOLS",
    "DEFAULT_KEPT_TOOLS",
    "MESSAGES_PLACEHOLDER",
    "PREAMBLE_BUDGET",
    "WORKSPACE_BUDGET",
    "ClearResultsConfig",
    "CompactionConfig",
    "DedupeReadsConfig",
    "HooksConfig",
    "ToolResultEvictionConfig",
    "TruncateArgsConfig",
    "TurnRecallConfig",
]


WORKSPACE_BUDGET = Tokens(8_000)
"""Default tokens of the workspace's part of the prompt: AGENTS.md, rules, guidance and preamble."""
PREAMBLE_BUDGET = Tokens(4_000)
"""Default tokens of the preamble: DESIGN's budget for curated memory."""


MESSAGES_PLACEHOLDER = "{messages}"
"""Placeholder in a summary prompt that is replaced by the conversation."""
DEFAULT_EXCLUDED_TOOLS = frozenset(
    {
        "read_file",
        "read_result",
        "write_file",
        "edit_file",
        "grep_files",
        "glob_files",
        "list_files",
        "memory_*",
        "plan_read",
        "session_search",
    }
)
"""Tools whose results are never evicted. They page or limit their results, so an evicted result would be read again."""
DEFAULT_KEPT_TOOLS = frozenset({"remember", "recall", "memory_*", "session_*", "expand"})
"""Tools whose old results are not cleared. The results are short and are needed later in the conversation."""


@dataclass(frozen=True, kw_only=True)
class ClearResultsConfig:
    """When old thinking and old tool results are cleared. Each cleared result leaves a handle that restores it.

    It runs from `trigger_messages` messages or `trigger_tokens` tokens, whichever comes first; 0 disables that trigger.
    The newest `keep_results` clearable results stay, and so do all results of `excluded_tool_names`, where `*` matches
    any characters. Thinking is cleared first, except in the newest `keep_thinking` turns; the current turn counts as
    one of them. Nothing is cleared unless that saves at least `min_tokens` tokens.
    """

    trigger_messages: int = 0
    trigger_tokens: int = 40_000
    keep_results: int = 5
    keep_thinking: int = 1
    min_tokens: int = 5_000
    excluded_tool_names: frozenset[str] = field(default=DEFAULT_KEPT_TOOLS)

    def __post_init__(self) -> None:
        """Reject negative sizes and invalid tool names."""
        for name in ("trigger_messages", "trigger_tokens", "keep_results", "min_tokens"):
            _require_whole(name, getattr(self, name), least=0)
        _require_whole("keep_thinking", self.keep_thinking, least=1)
        _require_names("excluded_tool_names", self.excluded_tool_names)
        object.__setattr__(self, "excluded_tool_names", frozenset(self.excluded_tool_names))

    @classmethod
    def recommended(cls, window: int | None) -> "ClearResultsConfig":
        """Return the defaults, which start before a summary does; in a small window they start at half of it."""
        config = cls()
        if window is None:
            return config
        return replace(
            config,
            trigger_tokens=min(config.trigger_tokens, max(1, window // 2)),
            min_tokens=min(config.min_tokens, window // 16),
        )


@dataclass(frozen=True, kw_only=True)
class DedupeReadsConfig:
    """Which tools read content that may be read again unchanged, and how much deduplication must save.

    An earlier result of one of `tool_names` becomes a pointer to a later identical result for the same arguments. It
    runs whenever that saves at least `min_tokens` tokens.
    """

    tool_names: frozenset[str] = field(default=frozenset({"read_file", "memory_get"}))
    min_tokens: int = 500

    def __post_init__(self) -> None:
        """Reject a negative size and invalid tool names."""
        _require_whole("min_tokens", self.min_tokens, least=0)
        _require_names("tool_names", self.tool_names)
        object.__setattr__(self, "tool_names", frozenset(self.tool_names))

    @classmethod
    def recommended(cls, window: int | None) -> "DedupeReadsConfig":
        """Return the defaults, for a window of any size."""
        del window
        return cls()


@dataclass(frozen=True, kw_only=True)
class TruncateArgsConfig:
    """When long arguments of older tool calls are truncated, and to what length.

    It runs from `trigger_messages` messages or `trigger_tokens` tokens, whichever comes first; 0 disables that trigger.
    The last `keep_messages` messages are not changed, or those of the last `keep_tokens` tokens when that is not 0. A
    string of more than `max_arg_length` characters becomes its first `kept_chars` characters followed by
    `truncation_text`, and never gets longer.
    """

    trigger_messages: int = 25
    trigger_tokens: int = 40_000
    keep_messages: int = 20
    keep_tokens: int = 0
    max_arg_length: int = 2_000
    kept_chars: int = 200
    truncation_text: str = "...(argument truncated)"

    def __post_init__(self) -> None:
        """Reject negative sizes, a zero length, and a truncated text that is longer than the limit."""
        for name in ("trigger_messages", "trigger_tokens", "keep_messages", "keep_tokens", "kept_chars"):
            _require_whole(name, getattr(self, name), least=0)
        _require_whole("max_arg_length", self.max_arg_length, least=1)
        _require_text("truncation_text", self.truncation_text)
        if self.kept_chars + len(self.truncation_text) > self.max_arg_length:
            raise InvalidSetting(
                f"kept_chars and the length of truncation_text come to at most max_arg_length, {self.max_arg_length}, "
                f"not {self.kept_chars + len(self.truncation_text)}."
            )

    @classmethod
    def recommended(cls, window: int | None) -> "TruncateArgsConfig":
        """Return the defaults, which start at half of a small window."""
        config = cls()
        tokens = config.trigger_tokens if window is None else min(config.trigger_tokens, max(1, window // 2))
        return replace(config, trigger_tokens=tokens)


@dataclass(frozen=True, kw_only=True)
class CompactionConfig:
    """When a summary replaces the older messages, and how many messages stay.

    Compaction starts at `trigger_messages` messages, at `trigger_tokens` tokens or at the fraction `trigger_share` of
    the reasoning model's window, whichever comes first. 0 disables that trigger; with all at 0 it never starts
    automatically. If only a token trigger is met, it waits until a summary saves a fifth of the messages' tokens.
    `trigger_tokens=None` means the reasoning model's window minus `reserved` tokens. The last `keep_messages` messages
    stay, or those of the last `keep_tokens` tokens when that is not 0. `keep_tokens=None` means the fraction
    `keep_tokens_ratio` of the trigger, clamped to `keep_tokens_min`..`keep_tokens_max` tokens. More messages stay only
    to keep calls with their results, fewer only if the window is too small.

    `window` is the reasoning model's window in tokens, used where the model does not know it. `summary_prompt` replaces
    the built-in prompt and must contain `{messages}`. `model` writes the summary, a name or a model; by default the
    agent's model does. `base_url` and `model_settings` apply to a model given by name. A summary takes at most about
    `summary_tokens` tokens, the user's requests quoted in it about `carry_tokens` more, and one request to the model at
    most `summary_seconds`. With `combined`, the summary request also returns lessons; otherwise the inbox extracts
    them. After `breaker` failures in a row, rules write the summary for `breaker_seconds` instead of the model;
    `breaker=0` never stops asking the model. Where a summary does not make enough room, whole groups of messages are
    dropped, unless `drop` is off. Where the agent has file tools, the `restore_files` most recently read files of the
    working directory are read again after a summary, in at most `restore_tokens` tokens; 0 restores none. A request
    that overflows the model's window is retried `overflow_retries` times, each after a forced compaction.
    """

    trigger_messages: int = 50
    trigger_tokens: int | Budget | None = 80_000
    trigger_share: float = 0.0
    keep_messages: int = 20
    keep_tokens: int | Budget | None = 0
    reserved: int = 20_000
    keep_tokens_min: int = 2_000
    keep_tokens_max: int = 8_000
    keep_tokens_ratio: float = 0.25
    flush_before_compact: bool = True
    offload_before_compact: bool = True
    summary_prompt: str | None = None
    summary_tokens: int = 2_000
    summary_seconds: float = 60.0
    carry_tokens: int = 1_000
    restore_files: int = 5
    restore_tokens: int = 5_000
    combined: bool = True
    breaker: int = 3
    breaker_seconds: float = 300.0
    drop: bool = True
    overflow_retries: int = 1
    truncate_args: TruncateArgsConfig | None = None
    model: "str | ChatModel | None" = None
    base_url: str | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    window: int | None = None

    def __post_init__(self) -> None:
        """Reject sizes below their minimum, a reversed range, and a prompt without the messages placeholder."""
        for name in (
            "trigger_messages",
            "reserved",
            "keep_tokens_min",
            "carry_tokens",
            "breaker",
            "overflow_retries",
            "restore_files",
            "restore_tokens",
        ):
            _require_whole(name, getattr(self, name), least=0)
        for name in ("keep_messages", "summary_tokens"):
            _require_whole(name, getattr(self, name), least=1)
        for name in ("trigger_tokens", "keep_tokens"):
            _require_budget(name, getattr(self, name))
        _require_whole("keep_tokens_max", self.keep_tokens_max, least=self.keep_tokens_min)
        _require_share("keep_tokens_ratio", self.keep_tokens_ratio)
        if self.trigger_share != 0:
            _require_share("trigger_share", self.trigger_share)
        for name in ("flush_before_compact", "offload_before_compact", "combined", "drop"):
            _require_switch(name, getattr(self, name))
        for name in ("summary_seconds", "breaker_seconds"):
            _require_seconds(name, getattr(self, name))
        if self.window is not None:
            _require_whole("window", self.window, least=1)
        self._check_summary()

    def _check_summary(self) -> None:
        if self.summary_prompt is not None:
            _require_text("summary_prompt", self.summary_prompt)
            if MESSAGES_PLACEHOLDER not in self.summary_prompt:
                raise InvalidSetting(
                    f"summary_prompt holds {MESSAGES_PLACEHOLDER} where the conversation goes; this one does not."
                )
        validate_model_name(self.model, self.base_url, self.model_settings)
        if self.truncate_args is not None and not isinstance(self.truncate_args, TruncateArgsConfig):
            raise InvalidSetting(f"truncate_args takes a TruncateArgsConfig or None, not {self.truncate_args!r}.")

    @classmethod
    def classic(cls) -> "CompactionConfig":
        """Return the defaults: start at 50 messages or 80,000 tokens, and keep 20 messages."""
        return cls()

    @classmethod
    def dynamic(cls, window: int | None = None) -> "CompactionConfig":
        """Return a configuration that follows the reasoning model's window.

        It starts at the window minus 20,000 tokens and keeps 2,000 to 8,000 tokens. `window` is used if given, else the
        window of each request. If the window is unknown, it starts at 160,000 tokens and keeps 20 messages.
        """
        return cls(trigger_messages=0, trigger_tokens=None, keep_tokens=None, window=window)

    @classmethod
    def recommended(cls, window: int | None) -> "CompactionConfig":
        """Return `dynamic`, with a smaller reserve if its 20,000 tokens exceed a quarter of the window.

        If the window is unknown, return `classic`.
        """
        if window is None:
            return cls.classic()
        config = cls.dynamic()
        return replace(config, reserved=min(config.reserved, max(1, window // 4)))


@dataclass(frozen=True, kw_only=True)
class ToolResultEvictionConfig:
    """Which tool results are moved to a file, and how much of them stays in the message.

    A result of more than `max_result_chars` characters is written to the folder `eviction_path` of the workspace. Its
    first and last `preview_chars` characters stay. Results of `excluded_tool_names` are never moved; `*` matches any
    characters.
    """

    max_result_chars: int = 80_000
    preview_chars: int = 2_000
    eviction_path: str = "/large_tool_results"
    excluded_tool_names: frozenset[str] = field(default=DEFAULT_EXCLUDED_TOOLS)

    def __post_init__(self) -> None:
        """Reject a missing limit, a preview above the limit, an invalid folder, and invalid tool names."""
        _require_whole("max_result_chars", self.max_result_chars, least=1)
        _require_whole("preview_chars", self.preview_chars, least=0)
        if self.preview_chars > self.max_result_chars:
            raise InvalidSetting(
                f"preview_chars is at most max_result_chars, {self.max_result_chars}, not {self.preview_chars}."
            )
        _require_text("eviction_path", self.eviction_path)
        parts = self.eviction_path.strip("/").split("/")
        if any(part.strip(". ") == "" or not part.isprintable() or "\\" in part for part in parts):
            raise InvalidSetting(f"eviction_path names a folder of the workspace, not {self.eviction_path!r}.")
        _require_names("excluded_tool_names", self.excluded_tool_names)
        object.__setattr__(self, "excluded_tool_names", frozenset(self.excluded_tool_names))

    @classmethod
    def defaults(cls) -> "ToolResultEvictionConfig":
        """Return the documented defaults. Passing this switches eviction on."""
        return cls()

    @classmethod
    def recommended(cls, window: int | None) -> "ToolResultEvictionConfig":
        """Return the defaults, for a window of any size."""
        del window
        return cls.defaults()


def _require_whole(name: str, value: object, *, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InvalidSetting(f"{name} is a whole number of at least {least}, not {value!r}.")


def _require_budget(name: str, value: object) -> None:
    if value is not None and not isinstance(value, Tokens | Share):
        _require_whole(name, value, least=0)


def _require_share(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= 1:
        raise InvalidSetting(f"{name} is a part of the whole, above 0 and up to 1, not {value!r}.")


def _require_seconds(name: str, value: object) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < float("inf"):
        raise InvalidSetting(f"{name} is a number above 0, not {value!r}.")


def _require_switch(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidSetting(f"{name} is True or False, not {value!r}.")


def _require_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InvalidSetting(f"{name} is a text that is not blank, not {value!r}.")


def _require_names(name: str, value: object) -> None:
    if isinstance(value, str) or not isinstance(value, Collection) or not all(isinstance(e, str) and e for e in value):
        raise InvalidSetting(f"{name} is a set of names of tools, not {value!r}.")


@dataclass(frozen=True, kw_only=True)
class TurnRecallConfig:
    """Limits of turn recall, in tokens by the built-in estimate; any value of 0 disables it.

    A turn shows up to `memories` entries in `turn_tokens` tokens, a session `session_tokens` in total. Entries that are
    not found within `seconds` are omitted.
    """

    turn_tokens: int = 500
    session_tokens: int = 5_000
    memories: int = 3
    seconds: float = 0.3

    def __post_init__(self) -> None:
        """Reject negative values and invalid seconds."""
        for name in ("turn_tokens", "session_tokens", "memories"):
            if getattr(self, name) < 0:
                raise InvalidSetting(f"{name} is a whole number of at least 0, not {getattr(self, name)}.")
        if not (math.isfinite(self.seconds) and self.seconds >= 0):
            raise InvalidSetting(f"seconds is a number of at least 0, not {self.seconds}.")

    @property
    def is_on(self) -> bool:
        """Whether turn recall can show anything."""
        return bool(self.turn_tokens and self.session_tokens and self.memories and self.seconds)


@dataclass(frozen=True, kw_only=True)
class HooksConfig:
    """What hooks give to a coding agent, in tokens by the built-in estimate, and whether they may start a worker.

    A session begins with at most `preamble_tokens` of memory. A prompt brings at most `memories` entries in
    `prompt_tokens` tokens, all prompts of a session `session_tokens` in total; 0 gives none. With `worker`, which only
    the user's own settings can set, a hook starts a process of at most 30 seconds that learns from what waits.
    """

    preamble_tokens: int = 2_000
    prompt_tokens: int = 500
    session_tokens: int = 5_000
    memories: int = 3
    worker: bool = False

    def __post_init__(self) -> None:
        """Reject negative values."""
        for name in ("preamble_tokens", "prompt_tokens", "session_tokens", "memories"):
            if getattr(self, name) < 0:
                raise InvalidSetting(f"{name} is a whole number of at least 0, not {getattr(self, name)}.")
