"""Renders pages from templates that all extend base.html.j2. Charts come from weft.report.svg.

A page is self-contained, since reports are mailed, archived, and opened on machines without a
network."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import jinja2

from weft import __version__


def environment() -> jinja2.Environment:
    """Returns the Jinja environment for the templates in this package."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("weft.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )


def render(template: str, **values: Any) -> str:
    """Returns the page of a template in this package. The template must extend base.html.j2."""
    return (
        environment()
        .get_template(template)
        .render(
            version=__version__,
            date=datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
            **values,
        )
    )
