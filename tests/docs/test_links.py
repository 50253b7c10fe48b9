"""Tests that links between pages are valid, and that figures in the README agree with those of
their page."""

from __future__ import annotations

import re

import pytest
from pages import ROOT, Page, all_pages, page_name

PAGES = all_pages()


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_lead_somewhere(page):
    for number, target in page.links:
        if re.match(r"[a-z]+:", target):
            continue
        where, _, anchor = target.partition("#")
        path = (page.path.parent / where).resolve() if where else page.path
        assert path.exists(), f"{page_name(page)}:{number}: {target} is not there"
        if anchor:
            anchors = Page(path).anchors
            assert anchor in anchors, f"{page_name(page)}:{number}: {target} names no heading"


def test_files_named_in_pages_exist():
    """Paths of the repository in inline code must exist."""
    named = re.compile(
        r"`((?:src|tools|tests|python|bench|kernels|include|api|cmake|packaging|docs)/[\w./-]+)`"
    )
    missing = [
        f"{page_name(page)}:{number}: {path}"
        for page in PAGES
        for number, line in page.prose
        for path in named.findall(line)
        if not (ROOT / path).exists() and not list(ROOT.glob(f"{path}.*"))
    ]
    assert not missing


def test_every_page_is_in_the_site():
    navigation = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES:
        if page.path.is_relative_to(ROOT / "docs"):
            assert str(page.path.relative_to(ROOT / "docs")) in navigation, page_name(page)


def test_no_figure_in_the_readme_without_its_machine():
    """A time or a share is meaningless without the machine on which it was measured."""
    page = PAGES[0]
    assert page_name(page) == "README.md"
    outside = "\n".join(line for _, line in page.prose)
    figure = re.compile(r"\d (?:µs|ms|s|%)(?![\w-])|times as (?:fast|long)|a third|half")
    paragraphs = [text for text in re.split(r"\n(?:\s*\n|(?=- ))", outside) if figure.search(text)]
    assert paragraphs, "the pattern finds the figures that are there"
    for text in paragraphs:
        assert re.search(r"machine|figures of the program", text), text
