"""What of the profiles of a root can't be read: whole documents, records of them, and what was kept aside before."""

import re

from anyio.to_thread import run_sync

from ricordo.errors import DocumentInvalid, FileMissing, StorageError
from ricordo.files import FileStore
from ricordo.workspace.layout import WORKSPACE, is_profile
from ricordo.workspace.profile_codec import parse_profile

__all__ = ["find_broken_profiles"]

_SET_ASIDE_PROFILE = re.compile(r"(?:.*/)?profile\.broken-\d+\.json")


async def find_broken_profiles(files: FileStore) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what can't be read, a few words for each, and the files that were kept aside."""
    paths = [info.path for info in await files.list(WORKSPACE)]
    profiles = [path for path in paths if is_profile(path)]
    found = [each for path in profiles for each in await _find_broken_records(files, path)]
    return tuple(found), tuple(path for path in paths if _SET_ASIDE_PROFILE.fullmatch(path))


async def _find_broken_records(files: FileStore, path: str) -> list[str]:
    try:
        read = await run_sync(parse_profile, (await files.read(path)).data, path)
    except FileMissing:
        return []
    except DocumentInvalid as error:
        return [str(error).rstrip(".")]
    except StorageError:
        return [f"{path} can't be read"]
    return [f"{path}: {each.where}: {each.why}" for each in read.broken]
