"""A document that can't be read is kept under another name before anybody writes in its place.

Invariant: when `quarantine_document` returns, its bytes are durable under the name that it returns; the document itself is left
as it is, so whoever replaces it names the version that was kept.
"""

from ricordo.errors import AlreadyExists
from ricordo.files.contract import FileStore, StoredFile

__all__ = ["quarantine_document"]


async def quarantine_document(files: FileStore, path: str, stored: StoredFile) -> str:
    """Keep the bytes of the document at `path` as `<path>.broken-<n>`, once, and return that name.

    Raises: StorageError, such as StorageReadOnly, and then nothing was kept.
    """
    number = 1
    while True:
        name = f"{path}.broken-{number}"
        try:
            await files.create(name, stored.data)
        except AlreadyExists:
            # one that was kept by another process, or by one that was killed after it, is not kept twice
            if (await files.read(name)).data == stored.data:
                return name
            number += 1
        else:
            return name
