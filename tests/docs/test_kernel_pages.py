"""Tests that each kernel has a page, which shows the change from blocking to overlapped, how to run
it, and where and when its figures were measured. Also tests that a kernel's file is short enough to
be read."""

from __future__ import annotations

import re

import pytest
from pages import ROOT

SOURCES = sorted((ROOT / "kernels").glob("*.cc"))
OF_GPUS = "gpu_"  # docs/kernels/gpu.md is the page of programs with this prefix
NAMES = [path.stem for path in SOURCES if not path.name.startswith(OF_GPUS)]


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_s_page_shows_what_changes_and_what_was_measured(name):
    text = (ROOT / "docs" / "kernels" / f"{name}.md").read_text()
    (diff,) = re.findall(r"## From blocking to overlapped\n.*?```diff\n(.*?)```", text, re.DOTALL)
    assert re.search(r"^-.*MPI_", diff, re.M) and re.search(r"^\+.*MPI_I", diff, re.M)
    assert f"kernels/{name}.cc" in text and "**Published**" in text and "**Here**" in text
    commands = text.split("## Try it")[1]
    assert f"build/bin/mpich/{name} " in commands and "$ weft bench --preset " in commands
    plain = " ".join(text.split())
    assert re.search(r"Machine: virtual machine, 2 cores \([\w ]+\), Linux 6\.18, 20\d\d-", plain)


@pytest.mark.parametrize("name", NAMES)
def test_a_kernel_s_page_is_in_the_navigation(name):
    assert f"kernels/{name}.md" in (ROOT / "mkdocs.yml").read_text()


@pytest.mark.parametrize("path", sorted((ROOT / "kernels").glob("*.[ch]*")), ids=lambda p: p.name)
def test_a_kernel_s_file_is_short(path):
    assert len(path.read_text().splitlines()) <= 600
