"""Weft's choices for calls: `weft plan` asks for them in advance, and `weft learned` reads stored
ones."""
