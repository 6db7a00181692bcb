"""The documents match the repository: links, lengths, measured figures, decisions."""

import re
from pathlib import Path

import pytest

from skep.core.session.transitions import MOST_FAILURES

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")))
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
DECISIONS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
INDEX = (ROOT / "docs/decisions/README.md").read_text()
MEASURED = [
    (figure.split()[0], re.search(r"\((.*)\)", file)[1])
    for row in re.findall(r"^\| (.*\]\(benchmarks/.*\)) \|$", README, flags=re.MULTILINE)
    for _, *figures, file in [row.split("|")]
    for figure in figures
    if figure.strip()
]
FILES = re.findall(
    r"`([a-z_]+/[a-z_/]*(?:\.py)?)`",
    ARCHITECTURE.partition("## Where would I add")[2].partition("## What is checked")[0],
)
SHOWN = re.findall(r"^\| `([a-z_/]+)/` \| (.*) \|$", ARCHITECTURE, flags=re.MULTILINE)


def anchors(page):
    """The anchors of a page's headings."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for link in re.findall(r"!?\[[^\]]*\]\(([^)\s]+)\)", page.read_text()):
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_pages_that_are_read_first_are_short():
    assert len(README.splitlines()) <= 120
    assert len(ARCHITECTURE.splitlines()) <= 150
    assert all(len(page.read_text().splitlines()) <= 25 for page in DECISIONS)


def test_the_diagram_says_after_how_many_failures_a_project_is_paused():
    assert f"(after {MOST_FAILURES} failures: paused" in ARCHITECTURE


@pytest.mark.parametrize(("figure", "file"), MEASURED)
def test_a_measured_figure_stands_in_its_file(figure, file):
    assert figure in re.findall(r"[\d.]+", (ROOT / file).read_text())


def test_there_are_measured_figures():
    assert len(MEASURED) >= 10


def test_every_decision_is_in_the_index():
    heads = [page.read_text().partition("\n")[0].removeprefix("# ").replace(".", "", 1) for page in DECISIONS]
    listed = re.findall(r"^\| \[(.*)\]\((.*)\) \|", INDEX, flags=re.MULTILINE)
    assert listed == [(head, page.name) for head, page in zip(heads, DECISIONS, strict=True)]


def test_what_a_decision_is_about_is_there():
    files = re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", INDEX)
    assert len(files) > len(DECISIONS)
    assert not [file for file in files if not any((ROOT / base / file).exists() for base in ("client/skep", ""))]


def test_packages_are_shown_file_by_file():
    assert len(SHOWN) >= 10


@pytest.mark.parametrize(("package", "row"), SHOWN, ids=[package for package, _ in SHOWN])
def test_every_module_of_a_package_that_is_shown_file_by_file_is_named(package, row):
    folder = next(folder for base in ("client/skep", "") if (folder := ROOT / base / package).is_dir())
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert modules == set(re.findall(r"`([a-z_]+)`", row))


@pytest.mark.parametrize("file", FILES)
def test_a_place_for_additions_is_there(file):
    assert any((ROOT / base / file).exists() for base in ("client/skep", "gui/skep_gui", "")), file
