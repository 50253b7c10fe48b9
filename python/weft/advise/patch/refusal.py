"""Defines the reason why a call is left as it is."""

from __future__ import annotations


class Refusal(Exception):
    """Raised if a call cannot be changed. The message completes the sentence "FILE:LINE is left as
    it is: …"."""
