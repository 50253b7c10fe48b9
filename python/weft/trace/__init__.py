"""`weft trace`: timelines that Weft has written, in other formats."""
