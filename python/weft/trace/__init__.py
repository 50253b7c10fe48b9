"""Converts timelines that Weft has written to other formats (`weft trace`)."""
