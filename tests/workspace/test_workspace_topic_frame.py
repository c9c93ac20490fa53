"""What consolidation writes around memories is told from what people write, and is no search result of its own."""

import pytest

from ricordo import Entry
from ricordo.curation.topics import create_topic, read_topic, render_topic_list
from ricordo.search.chunking import chunk_markdown
from ricordo.search.documents import SearchDocument
from ricordo.workspace import MEMORY_PATH
from ricordo.workspace.markdown import find_frame_lines

STORY = Entry(content="A long story about walnuts.", by="user")


def shown(path: str, data: bytes) -> list[str]:
    return [chunk.content for chunk in chunk_markdown(SearchDocument(path=path, document_type="curated"), data)]


def test_a_topic_that_we_began_and_the_line_that_lists_it_say_nothing_of_their_own() -> None:
    path, head = create_topic("Walnuts", [STORY])
    assert shown(path, head + b"- A long story about walnuts.\n") == ["A long story about walnuts."]
    (line,) = render_topic_list([read_topic(path, head)], b"")
    assert shown(MEMORY_PATH, b"# Memory\n\n## Topics\n\n" + line + b"\n## Facts\n\n- Tea.\n") == ["Tea."]


@pytest.mark.parametrize(
    "by_hand",
    [
        b"---\nname: Walnuts\ndescription: all of them\n---\n",
        b"1. [Walnuts](https://example.org/topics/a.md)\n",
        b"Text.\n",
    ],
)
def test_what_a_person_wrote_is_found(by_hand: bytes) -> None:
    assert find_frame_lines(by_hand) == frozenset()
    assert shown("workspace/memory/topics/a.md", by_hand) != []
