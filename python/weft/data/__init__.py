"""Reads and writes files: files that are written as a whole, JSON with a schema, and stored
plans."""
