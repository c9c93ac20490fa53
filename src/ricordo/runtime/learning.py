"""Learning: what extracts a root's sessions, put together: by the rules, or by a model where there is one to ask."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

from anyio.to_thread import run_sync

from ricordo.clock import Ids
from ricordo.errors import ExtraMissing, ModelError
from ricordo.events import Emitter
from ricordo.flush.asking import ModelExtraction
from ricordo.flush.config import NEVER, FlushConfig
from ricordo.flush.extract import extract
from ricordo.flush.extraction import Delta, Extracted, Extraction, RulesExtraction
from ricordo.flush.flush import Flusher
from ricordo.flush.section import SectionMaker
from ricordo.harness.offline import OFFLINE
from ricordo.maintenance.session_flush import SessionFlush
from ricordo.models import ChatModel
from ricordo.models.provider import load_model
from ricordo.queue import Queue
from ricordo.runtime.guarded_models import model_for_memory
from ricordo.runtime.settings import Settings
from ricordo.scopes import Scope
from ricordo.spending import Meter
from ricordo.stores.place import Place

__all__ = ["learning_from"]

_Made = Callable[[ChatModel], Extraction]


def learning_from(
    place: Place,
    scope: Scope,
    settings: Settings,
    *,
    model: ChatModel | None,
    meter: Meter,
    inbox: Queue,
    ids: Ids,
    emitter: Emitter,
    sections: Sequence[SectionMaker] = (),
    remembered: Callable[[str], Awaitable[Sequence[str]]] | None = None,
) -> SessionFlush:
    """Return what extracts the sessions of `place`, asking the model that the settings name, else the agent's `model`.

    What it costs is counted by `meter`; what has to wait goes to `inbox`. `sections` learn from the same request.
    `remembered` gives the memories that are nearest to a text.
    """
    config = settings.flush or FlushConfig(flush_trigger=NEVER)
    rules = RulesExtraction(rules=extract, sections=sections)

    def made(asked: ChatModel) -> Extraction:
        guarded = model_for_memory(asked, "flush", redactor=place.redactor, meter=meter, scope=scope)
        return ModelExtraction(model=guarded, config=config, rules=rules, files=place.files, clock=place.clock)

    return SessionFlush(
        place=place,
        flusher=Flusher(
            files=place.files,
            redactor=place.redactor,
            key=place.key,
            clock=place.clock,
            ids=ids,
            model=_extraction(config, settings, model, rules, made),
            sections=sections,
            detector=settings.detector,
            remembered=remembered,
        ),
        emitter=emitter,
        scope=scope,
        config=config,
        later=inbox.put,
    )


def _extraction(
    config: FlushConfig, settings: Settings, model: ChatModel | None, rules: RulesExtraction, made: _Made
) -> Extraction | None:
    """Return who asks a model; None where the rules do it all."""
    if isinstance(config.model, str) and config.model != OFFLINE:
        address = settings.address(config.model, setting="flush.base_url", own=config.base_url, agent=model)
        return _Named(
            load=partial(load_model, config.model, base_url=address, **asdict(config.model_settings)),
            made=made,
            rules=rules,
        )
    asked = model if config.model is None else config.model
    return made(asked) if not isinstance(asked, str | None) and asked.name != OFFLINE else None


@dataclass(kw_only=True)
class _Named:
    """Extraction by a model that is loaded when it is first asked, as most of who opens a root never asks it."""

    load: Callable[[], ChatModel]
    made: _Made
    rules: RulesExtraction
    _found: Extraction | None = field(default=None, init=False)

    async def __call__(self, delta: Delta) -> Extracted:
        """Return what the model finds; what the rules find while it can't be loaded."""
        if self._found is None:
            try:
                self._found = self.made(await run_sync(self.load))
            except (ModelError, ExtraMissing) as error:
                note = f"the rules extracted: {type(error).__name__}"
                return await self.rules.extracted(delta, len(delta.new), note=note)
        return await self._found(delta)
