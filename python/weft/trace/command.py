"""Defines the options of `weft trace`, which converts a timeline for other tools."""

from pathlib import Path
from typing import Annotated

import typer

REFUSED = 2


def trace(
    file: Annotated[
        Path,
        typer.Argument(
            help="What weft run, weft advise or weft sim wrote with --trace.",
            metavar="FILE",
            show_default=False,
        ),
    ],
    otf2: Annotated[
        Path,
        typer.Option(
            help="Write an archive of OTF2 into this new directory, for ViTE and Vampir.",
            metavar="DIRECTORY",
            show_default=False,
        ),
    ],
) -> None:
    """Convert a timeline to OTF2, which ViTE and Vampir read."""
    from weft.terminal import messages
    from weft.trace import archive, spans

    try:
        rows = spans.read(file)
        anchor = archive.write(otf2, rows)
    except (spans.NoTrace, archive.NoWriter) as error:
        messages.say("weft trace", error)
        raise typer.Exit(REFUSED) from None
    events = sum(len(row.spans) for row in rows)
    print(f"{anchor}: {events} regions of {len(rows)} locations")
