"""Writes results of measurements as HTML pages that open offline, and as pictures."""
