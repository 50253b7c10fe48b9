"""Distinguishes calls of MPI by their call stacks. A call in a wrapper function is treated as one
site for each place that calls the wrapper, since each of them may use the result at another time.
"""

from __future__ import annotations

from collections import defaultdict

from weft.advise.places import Frame, unresolved
from weft.advise.sites import Outer, Site
from weft.advise.store import Stored


def group_key(row: dict, way: list[dict]) -> tuple:
    names = ("module", "offset", "place", "call", "comm_kind", "comm_size", "size_class")
    outer = ("module", "offset", "line")
    return (
        *(row[name] for name in names),
        *(tuple(one[name] for name in outer) for one in way),
    )


def ways_of(stored: Stored) -> dict[tuple[int, int], list[dict]]:
    """Returns the functions that call each rank's site, the innermost first."""
    found: dict[tuple[int, int], list[dict]] = defaultdict(list)
    for row in sorted(stored["outer_place"], key=lambda row: row["depth"]):
        found[row["rank"], row["site"]].append(row)
    return found


def outer_of(way: list[dict], frames: dict[tuple[str, int], list[Frame]]) -> list[Outer]:
    """Returns the calling functions; an inlined function and the one that contains it both
    count."""
    found = []
    for row in way:
        place = row["module"], row["offset"]
        here = [Frame("", row["module"], row["line"])] if row["line"] else frames.get(place)
        found += [Outer(frame, bool(row["own"])) for frame in here or unresolved(*place)]
    return found


def tell_apart(sites: list[Site]) -> None:
    """Sets for each site how many calling functions distinguish it from other sites of the same
    line."""
    by_place: dict[tuple, list[Site]] = defaultdict(list)
    for site in sites:
        by_place[(*site.frames, site.call)].append(site)
    for same in by_place.values():
        ways = {tuple(site.outer) for site in same}
        for site in same:
            own = tuple(site.outer)
            depths = range(len(own) + 1)
            alike = (sum(way[:depth] == own[:depth] for way in ways) for depth in depths)
            site.told_by = next((d for d, others in zip(depths, alike) if others == 1), len(own))
