"""Lists all findings of the papers on which Weft is based, in the order of `weft reproduce --list`.

The list also has findings that cannot be tested on this kind of machine, with the reason, so that
no statement, figure or table is left out without a word."""

from __future__ import annotations

from weft.reproduce.claims import Published
from weft.reproduce.papers import denis, intel, jocksch, okuma, study

FINDINGS = (
    *okuma.FINDINGS,
    *study.FINDINGS,
    *denis.FINDINGS,
    *intel.FINDINGS,
    *jocksch.FINDINGS,
)


def named(name: str) -> Published:
    return next(one for one in FINDINGS if one.name == name)


def all_findings() -> tuple[Published, ...]:
    return FINDINGS
