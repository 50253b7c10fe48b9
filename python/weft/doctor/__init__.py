"""Checks whether each part of the set-up works, and names the fix if it does not (`weft
doctor`)."""
