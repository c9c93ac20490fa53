"""Facts of profiles in the index: each viewer's own alone, by postings and by the files alike."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ricordo.guard import Redactor
from ricordo.search import Query
from ricordo.search.chunking import chunk_profile
from ricordo.search.documents import classify_document
from ricordo.search.index import WorkspaceIndex
from ricordo.testing import InMemoryFiles
from ricordo.workspace import Fact, Profile, render_profile

pytestmark = pytest.mark.anyio
MINE, THEIRS = "workspace/users/ada/profile.json", "workspace/users/bob/profile.json"


def profile(*contents: str) -> bytes:
    facts = tuple(Fact(id=f"fact_{at}", content=content) for at, content in enumerate(contents))
    return render_profile(Profile(facts=facts))


async def filled() -> InMemoryFiles:
    files = InMemoryFiles()
    await files.create("workspace/MEMORY.md", b"- The wombat lives here.\n")
    await files.create(MINE, profile("Feeds the quokka.", "Drives a tractor."))
    await files.create(THEIRS, profile(*(f"Feeds the quokka and wombat {at} in Harvestingtown." for at in range(5))))
    return files


@pytest.fixture(params=["postings", "files"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> WorkspaceIndex:
    place = Path("/dev/null/none.db") if request.param == "files" else tmp_path / "index.db"
    opened = await WorkspaceIndex.open(place, await filled())
    await opened.refresh()
    return opened


@pytest.mark.req("DF-C52", "DF-FACTS-find")
async def test_only_the_profile_that_a_query_names_is_found(index: WorkspaceIndex) -> None:
    for text in ("quokka", "", "feeds quokka wombat", "2"):
        for who in (MINE, THEIRS, ""):
            paths = {match.path for match in await index.search(Query(text=text, profile=who), 50)}
            assert paths <= {"workspace/MEMORY.md", who}
            assert (who in paths) == bool(who and (text != "2" or who == THEIRS))
    assert await index.search(Query(text="quokka", document_types=("profile",)), 50) == []
    beyond = Query(text="quokka", path=THEIRS, profile=MINE)
    assert await index.search(beyond, 50) == []
    await index.close()


@pytest.mark.req("GO-I11", "HE-O-tenancy")
async def test_words_of_another_profile_are_as_rare_as_if_it_were_not_there(index: WorkspaceIndex) -> None:
    alone = InMemoryFiles()
    for path in ("workspace/MEMORY.md", MINE):
        await alone.create(path, (await (await filled()).read(path)).data)
    plain = await WorkspaceIndex.open(Path("/dev/null/none.db"), alone)
    for text in ("quokka wombat", "harvesting wombat", "tractors wombat"):
        asked = Query(text=text, profile=MINE)
        found, without = await index.search(asked, 9), await plain.search(asked, 9)
        assert [(each.content, each.missing_words, round(each.score, 6)) for each in found] == [
            (each.content, each.missing_words, round(each.score, 6)) for each in without
        ]
    related = Query(text="harvesting wombat", profile=MINE)
    assert (await index.search(related, 9))[0].missing_words == ("harvesting",)
    assert (await index.search(replace(related, profile=THEIRS), 9))[0].missing_words == ()
    await index.close()


@pytest.mark.req("DF-FACTS-find")
@settings(max_examples=20)
@given(st.lists(st.text(min_size=1, max_size=60), max_size=5), st.sampled_from([None, 1]), st.booleans())
def test_each_fact_is_a_chunk_on_the_line_that_says_it(
    contents: list[str], indent: int | None, ascii_only: bool
) -> None:
    facts = [{"id": f"fact_{at}", "content": content, "category": "goal"} for at, content in enumerate(contents)]
    text = json.dumps({"facts": facts}, indent=indent, ensure_ascii=ascii_only)
    document = classify_document(MINE, "workspace")
    assert document is not None
    data = text.encode("utf-8", "surrogatepass")
    told = [content for content in contents if content.strip()]
    found = chunk_profile(document, data, Redactor(bytes(32)))
    assert [chunk.content.encode("utf-8", "replace") for chunk in found] == [
        content.strip().encode("utf-8", "replace") for content in told
    ]
    lines = data.decode("utf-8", "replace").split("\n")
    for chunk, content in zip(found, told, strict=True):
        assert json.dumps(content, ensure_ascii=ascii_only) in lines[chunk.line_number - 1]
        assert chunk.kind == "goal" or chunk.kind == "fact"
