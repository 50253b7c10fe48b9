"""Tests the rules of docs/inside/style.md that can be checked automatically."""

from __future__ import annotations

import re

import pytest
from pages import ROOT

HALF = ("What", "Of", "Where", "One", "The same")
SOURCES = sorted(
    path for path in (ROOT / "src").rglob("*") if path.suffix in (".cc", ".h", ".cu", ".def")
)


def beginnings(lines: list[str]) -> list[tuple[int, str]]:
    """Returns the first line of each comment that has lines of its own, with its number."""
    found, inside = [], False
    for number, line in enumerate(lines, 1):
        text = re.match(r"\s*// ?(.*)", line)
        if text and not inside:
            found.append((number, text[1]))
        inside = text is not None
    return found


def half_sentences(lines: list[str]) -> list[tuple[int, str]]:
    words = re.compile(rf"(?:{'|'.join(HALF)})\b")
    return [(number, text) for number, text in beginnings(lines) if words.match(text)]


def test_comments_are_no_half_sentences():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {text}"
        for path in SOURCES
        for number, text in half_sentences(path.read_text().splitlines())
    ]
    assert found == []


@pytest.mark.parametrize("word", HALF)
def test_a_half_sentence_is_noticed(word):
    assert half_sentences(["int a;", f"  // {word} lies there.", "  // It is new."]) == [
        (2, f"{word} lies there.")
    ]


def test_the_page_names_these_words():
    page = (ROOT / "docs/inside/style.md").read_text()
    for word in HALF:
        assert f'"{word}"' in page
