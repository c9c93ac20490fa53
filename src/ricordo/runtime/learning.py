"""Learning: what extracts a root's sessions, put together: by the rules, or by a model where there is one to ask."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

from anyio.to_thread import run_sync

from ricordo.clock import IdSource
from ricordo.errors import ExtraMissing, ModelError
from ricordo.events import Emitter
from ricordo.flush.asking import ModelExtractor
from ricordo.flush.config import NEVER, FlushConfig
from ricordo.flush.extract import extract
from ricordo.flush.extraction import MessageDelta, ExtractionResult, Extractor, RuleExtractor
from ricordo.flush.flush import Flusher
from ricordo.flush.section import SectionFactory
from ricordo.harness.offline import OFFLINE
from ricordo.maintenance.session_flush import SessionExtraction
from ricordo.models import ChatModel
from ricordo.models.provider import load_model
from ricordo.queue import JobQueue
from ricordo.runtime.guarded_models import prepare_memory_model
from ricordo.runtime.settings import Settings
from ricordo.scopes import Scope
from ricordo.spending import SpendingMeter
from ricordo.stores.place import MemoryRoot

__all__ = ["create_session_flush"]

_MakeExtraction = Callable[[ChatModel], Extractor]


def create_session_flush(
    place: MemoryRoot,
    scope: Scope,
    settings: Settings,
    *,
    model: ChatModel | None,
    meter: SpendingMeter,
    inbox: JobQueue,
    ids: IdSource,
    emitter: Emitter,
    sections: Sequence[SectionFactory] = (),
    remembered: Callable[[str], Awaitable[Sequence[str]]] | None = None,
) -> SessionExtraction:
    """Return what extracts the sessions of `place`, asking the model that the settings name, else the agent's `model`.

    What it costs is counted by `meter`; what has to wait goes to `inbox`. `sections` learn from the same request.
    `remembered` gives the memories that are nearest to a text.
    """
    config = settings.flush or FlushConfig(flush_trigger=NEVER)
    rules = RuleExtractor(rules=extract, sections=sections)

    def make_extraction(asked: ChatModel) -> Extractor:
        guarded = prepare_memory_model(asked, "flush", redactor=place.redactor, meter=meter, scope=scope)
        return ModelExtractor(model=guarded, config=config, rules=rules, files=place.files, clock=place.clock)

    return SessionExtraction(
        place=place,
        flusher=Flusher(
            files=place.files,
            redactor=place.redactor,
            key=place.key,
            clock=place.clock,
            ids=ids,
            model=_choose_extraction(config, settings, model, rules, make_extraction),
            sections=sections,
            detector=settings.signal_detector,
            find_nearest=remembered,
        ),
        emitter=emitter,
        scope=scope,
        config=config,
        postpone=inbox.put,
    )


def _choose_extraction(
    config: FlushConfig, settings: Settings, model: ChatModel | None, rules: RuleExtractor, made: _MakeExtraction
) -> Extractor | None:
    """Return who asks a model; None where the rules do it all."""
    if isinstance(config.model, str) and config.model != OFFLINE:
        address = settings.resolve_address(config.model, setting="flush.base_url", own=config.base_url, agent=model)
        return _LazyExtraction(
            load=partial(load_model, config.model, base_url=address, **asdict(config.model_settings)),
            make=made,
            rules=rules,
        )
    asked = model if config.model is None else config.model
    return made(asked) if not isinstance(asked, str | None) and asked.name != OFFLINE else None


@dataclass(kw_only=True)
class _LazyExtraction:
    """Extraction by a model that is loaded when it is first asked, as most of who opens a root never asks it."""

    load: Callable[[], ChatModel]
    make: _MakeExtraction
    rules: RuleExtractor
    _extraction: Extractor | None = field(default=None, init=False)

    async def __call__(self, delta: MessageDelta) -> ExtractionResult:
        """Return what the model finds; what the rules find while it can't be loaded."""
        if self._extraction is None:
            try:
                self._extraction = self.make(await run_sync(self.load))
            except (ModelError, ExtraMissing) as error:
                note = f"the rules extracted: {type(error).__name__}"
                return await self.rules.extract(delta, len(delta.new), note=note)
        return await self._extraction(delta)
