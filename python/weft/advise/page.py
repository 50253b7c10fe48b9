"""The pages. That of a run: its first screen says the share in collectives and the best three
changes. That of two: run times, shares, and which collectives gained or lost."""

from __future__ import annotations

from pathlib import Path

from weft.advise import compare, fragments, show, timeline
from weft.advise.analysis import LEAST_WORTH, Advice
from weft.report import html

MOST_CHARACTERS = 60  # of a name beside a bar


def apart(names: list[str]) -> list[str]:
    """A bar each: plotly puts those of one name into one place."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return found


def chart(advice: Advice) -> dict:
    """One bar per site: waiting for others, transferring, and what is not known."""
    sites = advice.sites[: show.MOST_SITES]
    split = [(site.waiting or 0) * site.time_us for site in sites]
    known = [site.waiting is not None for site in sites]
    return {
        "names": apart(
            [f"{site.call} {show.short_place(site)}"[-MOST_CHARACTERS:] for site in sites]
        ),
        "waiting": [us / 1e3 for us in split],
        "transfer": [(s.time_us - us) / 1e3 if k else 0 for s, us, k in zip(sites, split, known)],
        "unknown": [0 if k else s.time_us / 1e3 for s, k in zip(sites, known)],
        "gain": [(site.gain_high_us or 0) / 1e3 for site in sites],
    }


def write(path: Path, advice: Advice) -> None:
    picture = timeline.picture(advice.timeline)
    drawn = sum(kind < timeline.GAP for _, _, _, kind, _ in picture["spans"])
    text = html.render(
        "advice.html.j2",
        advice=advice,
        chart=chart(advice),
        picture=picture,
        left_out=timeline.left_out(advice.timeline, drawn),
        show=show,
        fragments=fragments,
    )
    path.write_text(text, errors="backslashreplace")  # names of files may be no text


def write_comparison(path: Path, found: compare.Comparison) -> None:
    shown = found.changes[: show.MOST_SITES]
    sides = {"before": [one.before for one in shown], "after": [one.after for one in shown]}
    bars = {name: [one.us / 1e3 if one else 0 for one in ones] for name, ones in sides.items()}
    text = html.render(
        "advice_comparison.html.j2",
        found=found,
        chart={"names": apart([one.name[:MOST_CHARACTERS] for one in shown]), **bars},
        words=compare,
        microseconds=fragments.microseconds,
        least=LEAST_WORTH,
    )
    path.write_text(text, errors="backslashreplace")
