"""The site's source: each page in one place, each link leads somewhere, nothing is missing.

Sphinx is not asked here (``make site`` does, with warnings as errors); where it is installed a few
pages are built.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.main import get_command

import bubbleproof
from bubbleproof.cli import app
from website.api_pages import api_pages, faces
from website.command_pages import command_pages
from website.page_text import first_sentence, title_of
from website.sections import placed
from website.site_checks import findings
from website.staged_links import BrokenLinkError, LinkStager, anchors, place_of
from website.staging import ROOT, repository_pages, stage


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole source."""
    folder = tmp_path_factory.mktemp("site") / "source"
    assert stage(folder) > 100
    return folder


def test_every_page_of_the_repository_is_there_and_stands_once_in_the_menu(tree: Path) -> None:
    pages = repository_pages()
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")} <= {*pages}
    assert all((tree / place_of(page)).is_file() for page in [*pages, "README.md"])
    stands = [
        page for each in placed(pages) for group in each.groups for page in group.pages
    ]  # fmt: skip
    assert sorted(stands) == sorted(pages)


def test_measured_pages_stand_apart() -> None:
    (measured,) = [each for each in placed(repository_pages()) if each.section.key == "measured"]
    inside = {page for group in measured.groups for page in group.pages}
    assert inside == {page for page in repository_pages() if page.startswith("docs/measured/")}


def test_a_page_in_a_new_folder_gets_a_section() -> None:
    (found,) = placed(["docs/catalog/a.md"])
    assert (found.section.key, found.groups[0].pages) == ("catalog", ("docs/catalog/a.md",))


def test_links_lead_to_pages_files_and_pictures(tree: Path) -> None:
    links = LinkStager(ROOT)
    text = (
        "[a](design.md#4-what-is-trusted) ![b](pictures/1f1b.svg) "
        "[c](../../examples/ci/test_step.py) `](no)`"
    )
    assert links.staged(text, "docs/guide/verifying.md") == (
        "[a](design.md#4-what-is-trusted) ![b](pictures/1f1b.svg) "
        "[c](../files/examples/ci/test_step.py.md) `](no)`"
    )
    assert links.staged("[d](docs/guide/design.md)", "README.md") == "[d](guide/design.md)"
    assert links.staged("```\n[x](lost.md)\n```\n", "README.md") == "```\n[x](lost.md)\n```\n"
    assert links.broken == []
    assert (tree / "files/examples/ci/test_step.py.md").is_file()
    assert (tree / "guide/pictures/1f1b.svg").is_file()


@pytest.mark.parametrize("target", ["lost.md", "design.md#no-such-heading", "../../../etc/passwd"])
def test_a_link_that_leads_nowhere_is_refused(target: str) -> None:
    links = LinkStager(ROOT)
    links.staged(f"[x]({target})", "docs/guide/verifying.md")
    with pytest.raises(BrokenLinkError, match=r"docs/guide/verifying.md: "):
        links.refuse_broken()


def test_a_changelog_may_name_what_is_gone() -> None:
    links = LinkStager(ROOT)
    assert links.staged("see [x](gone.md).", "CHANGELOG.md") == "see x."
    links.refuse_broken()


def test_headings_are_called_as_on_the_web() -> None:
    assert anchors("# A `b` c\n```\n# no\n```\n## 2. D, e: f\n") == {"a-b-c", "2-d-e-f"}


def test_a_page_may_set_places_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text('# A\n\n<a id="x-1"></a>\n\n## Other\n')
    links = LinkStager(tmp_path)
    assert links.staged('<a id="x-1"></a>\n', "docs/a.md") == "(x-1)=\n"
    assert links.staged("[t](a.md#x-1)", "docs/b.md") == "[t](#x-1)"
    assert links.staged("[t](a.md#other)", "docs/b.md") == "[t](a.md#other)"
    links.refuse_broken()
    links.staged("[t](a.md#x-2)", "docs/b.md")
    assert links.broken == ["docs/b.md: a.md#x-2, a heading that is not there"]


def test_every_public_name_has_its_page() -> None:
    pages = api_pages()
    for name in bubbleproof.__all__:
        assert f":: bubbleproof.{name}\n" in pages[f"api/{name}.rst"], name
    for name, face in faces().items():
        text = pages[f"api/{name.partition('.')[2]}.rst"]
        assert all(f"{name}.{each}" in text for each in face.__all__), name
    assert {"bubbleproof.verify", "bubbleproof.solvers", "bubbleproof.formats"} <= {*faces()}
    assert ".. automodule:: bubbleproof.testing.assertions" in pages["api/testing.rst"]


def test_every_command_has_its_page_with_all_its_options() -> None:
    pages = command_pages()
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]  # a group
        text = pages[f"commands/{name}.md"]
        assert f"| [{name}]({name}.md) |" in pages["commands/index.md"]
        for option in (each for each in command.params if each.param_type_name == "option"):
            assert option.hidden or option.opts[0] in text, (name, option.opts)


def test_an_index_names_a_page_by_its_title_and_first_sentence() -> None:
    text = "# T\n\nGenerated by `x`.\n\n| a |\n\nWhat [it](b.md) says: more. Then.\n"
    assert (title_of(text), first_sentence(text)) == ("T", "What it says: more.")
    with pytest.raises(ValueError, match="without a title"):
        title_of("## second\n")


HEAD = '<link rel="stylesheet" href="a.css"><script src="a.js"></script>'


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ('<script src="https://x.org/a.js"></script>', "loads https://x.org/a.js from elsewhere"),
        ('<link rel="stylesheet" href="//x.org/a.css">', "loads //x.org/a.css from elsewhere"),
        ('<img src="https://x.org/a.png">', "loads https://x.org/a.png from elsewhere"),
        ("<style>@import 'https://x.org/f.css';</style>", "https://x.org/f.css from elsewhere"),
        ('<p style="background:url(https://x.org/a)">', "loads https://x.org/a from elsewhere"),
        ('<a href="lost.html">x</a>', "links to lost.html, which is not there"),
        ('<a href="#lost">x</a>', "links to #lost, a heading that is not there"),
    ],
)
def test_what_a_site_must_not_have_is_found(tmp_path: Path, body: str, finding: str) -> None:
    for name in ("a.css", "a.js"):
        (tmp_path / name).write_text("")
    page = tmp_path / "page.html"
    page.write_text(HEAD + '<h1 id="here"></h1><a href="#here"></a><a href="https://x.org"></a>')
    assert findings(tmp_path) == []
    page.write_text(HEAD + body)
    assert [line for line in findings(tmp_path) if line.startswith("page.html") and finding in line]
    (tmp_path / "a.css").write_text("a { src: url(https://x.org/f.woff) }")
    assert "a.css loads https://x.org/f.woff from elsewhere" in findings(tmp_path)


@pytest.mark.skipif(find_spec("sphinx") is None, reason="building pages needs the extra site")
def test_a_page_is_built_and_a_warning_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# A page\n\n[x](#a-page)\n")
    words = ["-m", "sphinx", "-q", "-W", "-E", "-c", str(ROOT / "website"), "-b", "html"]
    command = [sys.executable, *words, str(tmp_path), str(tmp_path / "out")]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert findings(tmp_path / "out") == []
    (tmp_path / "index.md").write_text("# A page\n\n[x](lost.md)\n")
    assert subprocess.run(command, check=False, capture_output=True).returncode != 0
