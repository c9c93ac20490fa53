"""Measuring requests: their size in tokens as the provider counts them, which its reports teach."""

from dataclasses import dataclass

from anyio.to_thread import run_sync

from ricordo.compaction import Window
from ricordo.middleware.contract import ModelRequest
from ricordo.models import ChatModel
from ricordo.models.limits import declared_window, max_messages
from ricordo.tokens import Calibration, TokenCorrection, RequestEstimate, estimate_request

__all__ = ["RequestMeter", "MeasuredRequest", "create_meter"]


@dataclass(frozen=True, kw_only=True)
class MeasuredRequest:
    """A request as a window to reduce, and its estimated tokens before any correction."""

    window: Window
    estimate: RequestEstimate

    @property
    def tokens(self) -> int:
        """The tokens of the window's messages, corrected."""
        return round(self.estimate.messages * self.window.ratio)


class RequestMeter:
    """Measures the requests to one model. Share one between the middleware of a session."""

    def __init__(
        self, *, model: str = "", limit: int | None = None, ratio: float = 1.0, most_messages: int | None = None
    ) -> None:
        """Begin with what is known: the model's window in tokens, the `ratio` of an earlier session, 0.25 to 4, and how
        many messages one request may have."""
        self._model = model
        self._declared = limit
        self._refused_limit: int | None = None
        self._largest_answered = 0
        self._most_messages = most_messages
        self._calibration = Calibration(corrections={model: TokenCorrection(factor=min(max(ratio, 0.25), 4.0))})
        self._last: tuple[ModelRequest, RequestEstimate] | None = None

    @property
    def ratio(self) -> float:
        """What the estimated tokens of messages are multiplied by; keep it for the next session."""
        return self._calibration.corrections[self._model].factor

    @property
    def limit(self) -> int | None:
        """The model's window in tokens: what it was said to be, or less where a refusal told so; None if not known."""
        return min((each for each in (self._declared, self._refused_limit) if each is not None), default=None)

    def learn_limits(self, *, window: int | None, messages: int | None) -> None:
        """Take in what a refusal told: the model's window in tokens, and how many messages a request may have.

        A window that is smaller than a request that was answered is not believed.
        """
        if window is not None and window >= self._largest_answered:
            self._refused_limit = window
        self._most_messages = messages or self._most_messages

    async def measure(self, request: ModelRequest, *, forced: str = "", limit: int | None = None) -> MeasuredRequest:
        """Return `request` as a window; `limit` in tokens takes the place of the model's.

        What the provider adds of its own counts as overhead, and so does the reminder: nothing can shorten them.
        """
        estimate = await self._estimate(request)
        total = self._calibration.correct(self._model, estimate.input)
        window = Window(
            messages=request.window,
            agent=request.turn.agent,
            session=request.turn.session,
            overhead=max(0, total - round(estimate.messages * self.ratio)),
            limit=limit or self.limit,
            most_messages=self._most_messages,
            ratio=self.ratio,
            forced=forced,
        )
        return MeasuredRequest(window=window, estimate=estimate)

    async def learn(self, request: ModelRequest, reported: int, *, answered: bool = True) -> None:
        """Take in what the provider counted for `request`: input tokens, those of its cache included; 0 tells nothing.

        See `Usage.input` of a reply, and `size` of an overflow, which was not `answered`. A window that a refusal told
        is forgotten where a larger request was answered.
        """
        if answered:
            self._largest_answered = max(self._largest_answered, reported)
            self._refused_limit = None if self._largest_answered > (self._refused_limit or 0) else self._refused_limit
        if reported > 0:
            estimated = (await self._estimate(request)).input
            self._calibration = self._calibration.observe(self._model, estimated=estimated, reported=reported)

    async def _estimate(self, request: ModelRequest) -> RequestEstimate:
        """Return the estimate, made in a worker thread: a large window takes long; asked twice, it is made once."""
        if self._last and _is_same_request(self._last[0], request):
            return self._last[1]
        found = await run_sync(_estimate_tokens, request)
        self._last = (request, found)
        return found


def create_meter(model: ChatModel, *, ratio: float) -> RequestMeter:
    """Return the measure of a session with `model`, which begins with what is documented of its limits."""
    limit, most = declared_window(model), max_messages(model)
    return RequestMeter(model=model.name, limit=limit, ratio=ratio, most_messages=most)


def _is_same_request(one: ModelRequest, other: ModelRequest) -> bool:
    beside = (one.system, one.tools, one.reminder) == (other.system, other.tools, other.reminder)
    return one.window is other.window and beside


def _estimate_tokens(request: ModelRequest) -> RequestEstimate:
    return estimate_request(request.window, system=request.system, tools=request.tools, reminder=request.reminder)
