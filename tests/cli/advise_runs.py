"""What the tests of `weft advise` share beside their fixtures (conftest.py)."""

from __future__ import annotations

import json
from pathlib import Path

HERE = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def sites(path: Path) -> dict[str, dict]:
    """By function and call."""
    document = json.loads(path.read_text())
    assert document["schema"] == "weft-advise/1"
    return {f"{site['function']} {site['call']}": site for site in document["sites"]}
