"""Reads the pages of the documentation: their code blocks, headings, links and inline code, with
line numbers.

No Markdown library is used, since the tests need line numbers, and the pages use only a few
forms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from weft.system import installation

ROOT = installation.ROOT
COMMENT = re.compile(r"<!-- (not run|output differs): (.+?) -->")
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<language>[\w-]*)")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
SHELL = ("console", "sh", "bash", "shell")


@dataclass
class Block:
    page: Path
    line: int
    language: str
    lines: list[str] = field(default_factory=list)
    not_run: str = ""  # why the commands are not run; empty if they are
    differs: str = ""  # why the output differs each time; empty if it does not

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.language in (*SHELL, "python") and not self.not_run

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Returns each command of a console block with the output shown below it."""
        if self.language == "python":
            program = "\n".join(self.lines)
            return [(f"python - <<'END'\n{program}\nEND", "")]
        found: list[tuple[str, list[str]]] = []
        for line in self.lines:
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif found and found[-1][0].endswith("\\"):
                found[-1] = (f"{found[-1][0]}\n{line}", [])
            elif found:
                found[-1][1].append(line)
        return [(command, "\n".join(output)) for command, output in found]


class Page:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_text().splitlines()

    @cached_property
    def parsed(self) -> tuple[list[Block], list[tuple[int, str]]]:
        """Returns the blocks, and the lines outside of them with their numbers."""
        blocks: list[Block] = []
        prose: list[tuple[int, str]] = []
        block, fence, remark = None, "", {}
        for number, line in enumerate(self.lines, 1):
            start = FENCE.match(line)
            if block:
                if line == fence:
                    blocks.append(block)
                    block = None
                else:
                    block.lines.append(line)
            elif start:
                fence = start["fence"]
                block = Block(
                    self.path,
                    number,
                    start["language"],
                    not_run=remark.get("not run", ""),
                    differs=remark.get("output differs", ""),
                )
                remark = {}
            else:
                if line.strip():  # a remark only applies to the block directly below it
                    remark = dict(COMMENT.findall(line))
                prose.append((number, line))
        assert block is None, f"{self.path}: a block does not end"
        return blocks, prose

    @property
    def blocks(self) -> list[Block]:
        return self.parsed[0]

    @property
    def prose(self) -> list[tuple[int, str]]:
        return self.parsed[1]

    @property
    def links(self) -> list[tuple[int, str]]:
        return [
            (number, target)
            for number, line in self.prose
            for target in LINK.findall(re.sub(r"`[^`]*`", "`code`", line))
        ]

    @property
    def anchors(self) -> set[str]:
        titles = [line.lstrip("#").strip() for _, line in self.prose if re.match("#+ ", line)]
        return {slug(title) for title in titles}


def slug(title: str) -> str:
    """Returns the anchor of a heading, as GitHub and the site make it."""
    words = re.sub(r"[^\w\- ]", "", title.replace("`", "").lower())
    return words.strip().replace(" ", "-")


def all_pages() -> list[Page]:
    paths = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "packaging/README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    return [Page(path) for path in paths]


def page_name(page: Page) -> str:
    return str(page.path.relative_to(ROOT))
