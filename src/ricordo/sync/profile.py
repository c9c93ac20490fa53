"""The profile of a scope for programs that do not await."""

from ricordo.profile.managing import ManagedProfile as AsyncProfile
from ricordo.sync.face import Face, blocking

__all__ = ["ManagedProfile"]


class ManagedProfile(Face[AsyncProfile]):
    """The profile of one scope; the methods are those of `ricordo.profile.managing.ManagedProfile`."""

    show = blocking(AsyncProfile.show)
    rendered = blocking(AsyncProfile.rendered)
    facts = blocking(AsyncProfile.facts)
    fact = blocking(AsyncProfile.fact)
    add_fact = blocking(AsyncProfile.add_fact)
    update_fact = blocking(AsyncProfile.update_fact)
    pin = blocking(AsyncProfile.pin)
    remove_fact = blocking(AsyncProfile.remove_fact)
    set_summary = blocking(AsyncProfile.set_summary)
    replace_all = blocking(AsyncProfile.replace_all)
    clear = blocking(AsyncProfile.clear)
    export_document = blocking(AsyncProfile.export_document)
    import_document = blocking(AsyncProfile.import_document)
