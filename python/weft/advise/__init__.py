"""`weft advise`: which collectives of a program would gain from running behind computation."""
