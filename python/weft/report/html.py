"""The frame that all pages share: base.html.j2, into which charts are drawn (weft.report.svg).

Why self-contained: a report is mailed, archived and opened on machines without a network.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import jinja2

from weft import __version__


def environment() -> jinja2.Environment:
    """For the templates in this package."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("weft.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def render(template: str, **values: Any) -> str:
    """The page of a template in this package, which extends base.html.j2."""
    return (
        environment()
        .get_template(template)
        .render(
            version=__version__,
            date=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
            **values,
        )
    )
