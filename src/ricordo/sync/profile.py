"""The profile of a scope for programs that do not await."""

from ricordo.profile.managing import UserProfile as AsyncProfile
from ricordo.sync.face import SyncProxy, make_blocking

__all__ = ["SyncProfile"]


class SyncProfile(SyncProxy[AsyncProfile]):
    """The profile of one scope; the methods are those of `ricordo.profile.managing.UserProfile`."""

    show = make_blocking(AsyncProfile.show)
    render = make_blocking(AsyncProfile.render)
    facts = make_blocking(AsyncProfile.facts)
    fact = make_blocking(AsyncProfile.fact)
    add_fact = make_blocking(AsyncProfile.add_fact)
    update_fact = make_blocking(AsyncProfile.update_fact)
    pin = make_blocking(AsyncProfile.pin)
    remove_fact = make_blocking(AsyncProfile.remove_fact)
    set_summary = make_blocking(AsyncProfile.set_summary)
    replace_all = make_blocking(AsyncProfile.replace_all)
    clear = make_blocking(AsyncProfile.clear)
    export_document = make_blocking(AsyncProfile.export_document)
    import_document = make_blocking(AsyncProfile.import_document)
