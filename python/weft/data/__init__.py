"""What Weft writes and reads: whole files, JSON with a schema, the plans that it keeps."""
