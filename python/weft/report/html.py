"""The frame that all pages share: base.html.j2 with the plotting script inside.

Why self-contained: a report is mailed, archived and opened on machines without a network.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import jinja2
from plotly.offline import get_plotlyjs

from weft import __version__


def render(template: str, **values: Any) -> str:
    """The page of a template in this package, which extends base.html.j2."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("weft.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template(template).render(
        version=__version__,
        date=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        plotly=get_plotlyjs(),
        **values,
    )
