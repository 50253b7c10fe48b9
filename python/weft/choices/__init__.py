"""Weft's choices for calls: `weft plan` asks for them in advance, `weft learned` reads those
kept."""
