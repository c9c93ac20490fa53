"""Configurations of the strategies: when each one acts, and how far.

A plain number of a limit in tokens is a count; a part of the model's window is a `Share`.

Invariant: a configuration that exists can be carried out. A wrong value is refused with the name of its field.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from ricordo.errors import InvalidSetting
from ricordo.messages.tokens import Budget, Share, Tokens
from ricordo.models import ChatModel, ModelSettings
from ricordo.models.provider import validate_model_name

__all__ = [
    "ClearResultsConfig",
    "CompactionConfig",
    "DEFAULT_EXCLUDED_TOOLS",
    "DEFAULT_KEPT_TOOLS",
    "DedupeReadsConfig",
    "MESSAGES_PLACEHOLDER",
    "ToolResultEvictionConfig",
    "TruncateArgsConfig",
]


MESSAGES_PLACEHOLDER = "{messages}"
"""What a summary prompt holds where the conversation goes."""
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
"""Tools whose results stay: those that page or bound what they answer, so an evicted one would come straight back."""
DEFAULT_KEPT_TOOLS = frozenset({"remember", "recall", "memory_*", "session_*", "expand"})
"""Tools whose old results are not cleared: short, and asked for because they were needed later on."""


@dataclass(frozen=True, kw_only=True)
class ClearResultsConfig:
    """When old thoughts and old tool results are cleared, each result leaving a handle that opens it again.

    It acts from `trigger_messages` messages or `trigger_tokens` tokens on, whichever comes first; 0 switches that one
    off. The newest `keep_results` results that could be cleared stay, and so do all of `excluded_tool_names`, where a
    `*` stands for any characters. What the model thought goes first, but for the newest `keep_thinking` turns, of which
    1 is the one that goes on. Nothing is cleared unless that takes off at least `min_tokens` tokens.
    """

    trigger_messages: int = 0
    trigger_tokens: int = 40_000
    keep_results: int = 5
    keep_thinking: int = 1
    min_tokens: int = 5_000
    excluded_tool_names: frozenset[str] = field(default=DEFAULT_KEPT_TOOLS)

    def __post_init__(self) -> None:
        """Refuse negative sizes, and names that are none."""
        for name in ("trigger_messages", "trigger_tokens", "keep_results", "min_tokens"):
            _require_whole(name, getattr(self, name), least=0)
        _require_whole("keep_thinking", self.keep_thinking, least=1)
        _require_names("excluded_tool_names", self.excluded_tool_names)
        object.__setattr__(self, "excluded_tool_names", frozenset(self.excluded_tool_names))


@dataclass(frozen=True, kw_only=True)
class DedupeReadsConfig:
    """Which tools read what may be read again unchanged, and what it must save.

    An earlier result of one of `tool_names` that a later one repeats, for the same arguments, becomes a pointer to it.
    It acts whenever that takes off at least `min_tokens` tokens.
    """

    tool_names: frozenset[str] = field(default=frozenset({"read_file", "memory_get"}))
    min_tokens: int = 500

    def __post_init__(self) -> None:
        """Refuse a negative size, and names that are none."""
        _require_whole("min_tokens", self.min_tokens, least=0)
        _require_names("tool_names", self.tool_names)
        object.__setattr__(self, "tool_names", frozenset(self.tool_names))


@dataclass(frozen=True, kw_only=True)
class TruncateArgsConfig:
    """When the long arguments of older tool calls are clipped, and to what.

    It acts from `trigger_messages` messages or `trigger_tokens` tokens on, whichever comes first; 0 switches that one
    off. The last `keep_messages` messages stay as they are, or those of the last `keep_tokens` tokens when that is not
    0. A string of more than `max_arg_length` characters becomes its first `kept_chars` and `truncation_text`, and is no
    longer than before.
    """

    trigger_messages: int = 25
    trigger_tokens: int = 40_000
    keep_messages: int = 20
    keep_tokens: int = 0
    max_arg_length: int = 2_000
    kept_chars: int = 200
    truncation_text: str = "...(argument truncated)"

    def __post_init__(self) -> None:
        """Refuse negative sizes, no length, and a clipped text that is longer than the limit."""
        for name in ("trigger_messages", "trigger_tokens", "keep_messages", "keep_tokens", "kept_chars"):
            _require_whole(name, getattr(self, name), least=0)
        _require_whole("max_arg_length", self.max_arg_length, least=1)
        _require_text("truncation_text", self.truncation_text)
        if self.kept_chars + len(self.truncation_text) > self.max_arg_length:
            raise InvalidSetting(
                f"kept_chars and the length of truncation_text come to at most max_arg_length, {self.max_arg_length}, "
                f"not {self.kept_chars + len(self.truncation_text)}."
            )


@dataclass(frozen=True, kw_only=True)
class CompactionConfig:
    """When a summary takes the place of the older messages, and how many stay.

    It starts at `trigger_messages` messages, `trigger_tokens` tokens or the part `trigger_share` of the reasoning
    model's window, whichever comes first; 0 switches that one off, and with all at 0 it never starts by itself. For
    tokens alone it waits until a summary takes off a fifth of what the messages hold. `trigger_tokens=None` means the
    reasoning model's window less `reserved` tokens. The last `keep_messages` messages stay, or those of the last
    `keep_tokens` tokens when that is not 0; `keep_tokens=None` means the part `keep_tokens_ratio` of the trigger,
    from `keep_tokens_min` to `keep_tokens_max` tokens. More stays only to keep calls with their results, less only
    if the window is too small.

    `window` is the reasoning model's window in tokens where the model does not know it. `summary_prompt` replaces the
    built-in prompt and holds `{messages}`; `model` is the summary's own, a name or a model, else the agent's is asked;
    `base_url` is where the model of this name is reached, `model_settings` what it is told. A summary takes about
    `summary_tokens` at most, what the user asked, word for word, about `carry_tokens` beside it, and one request to the
    model `summary_seconds`. With `combined` the request for the summary yields what was learned too, without it that is
    left to the inbox. After
    `breaker` failures in a row the model is not asked for a summary for `breaker_seconds`, and rules write it; 0 never
    stops asking. Where a summary does not make enough room, whole groups of messages are dropped, unless `drop` is
    off. Where the agent has file tools, the `restore_files` files of the working directory that were read last are read
    anew after a summary, in at most `restore_tokens` tokens; 0 restores none. A request that overflows the model's
    window is made again `overflow_retries` times, each after a forced compaction.
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
    model: str | ChatModel | None = None
    base_url: str | None = None
    model_settings: ModelSettings = field(default_factory=ModelSettings)
    window: int | None = None

    def __post_init__(self) -> None:
        """Refuse sizes below their least, a range turned round, and a prompt without a place for the messages."""
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
        """Return the defaults: from 50 messages or 80,000 tokens on, and 20 messages stay."""
        return cls()

    @classmethod
    def dynamic(cls, window: int | None = None) -> "CompactionConfig":
        """Return what follows the reasoning model's window: from its tokens less 20,000 on, and 2,000 to 8,000 stay.

        `window` is used where it is given, else what each request says; unknown, it starts at 160,000 tokens and 20
        messages stay.
        """
        return cls(trigger_messages=0, trigger_tokens=None, keep_tokens=None, window=window)


@dataclass(frozen=True, kw_only=True)
class ToolResultEvictionConfig:
    """Which tool results go to a file, and what stays of them.

    A result of more than `max_result_chars` characters goes to the folder `eviction_path` of the workspace; its first
    and last `preview_chars` characters stay. Results of `excluded_tool_names` stay whole; a `*` stands for any
    characters.
    """

    max_result_chars: int = 80_000
    preview_chars: int = 2_000
    eviction_path: str = "/large_tool_results"
    excluded_tool_names: frozenset[str] = field(default=DEFAULT_EXCLUDED_TOOLS)

    def __post_init__(self) -> None:
        """Refuse no limit, a preview larger than the limit, a folder that is none, and names that are none."""
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
        """Return the documented defaults: passing this switches eviction on."""
        return cls()


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
