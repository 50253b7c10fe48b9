"""Files that Weft writes and reads: whole files, JSON with a schema, and kept plans."""
