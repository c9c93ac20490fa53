"""What an embedder reads of a chunk, and the number that tells this text from any other.

Vectors belong to texts and not to chunks: a chunk that moves, comes back or stands twice has its vector already.
"""

from hashlib import blake2b

from ricordo.index.contract import Chunk

__all__ = ["embedding_text", "hash64", "embedding_text_id"]


def embedding_text(chunk: Chunk) -> str:
    """Return by whom and under which heading it stands, and the text itself; neighbours are left out.

    Its date is left out too: that is found as words, and of a short text it would be half of what it means.
    """
    # the heading of a ledger is a date
    heading = chunk.heading if any(map(str.isalpha, chunk.heading)) else ""
    about = "".join(f"{name}: " for name in (chunk.speaker, heading) if name)
    return f"{about}{chunk.content}"


def embedding_text_id(chunk: Chunk) -> int:
    """Return the number of the text that is embedded, the same before and after it was stored."""
    return hash64(embedding_text(chunk))


def hash64(text: str) -> int:
    """Return a digest of 64 bits, as a signed number."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
