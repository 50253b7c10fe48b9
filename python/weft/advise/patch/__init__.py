"""Writes the advised changes as a unified diff of the user's source (`weft advise --patch`)."""
