"""Why a call is left as it is."""

from __future__ import annotations


class Refusal(Exception):
    """The message completes the sentence "FILE:LINE is left as it is: …"."""
