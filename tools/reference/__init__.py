"""Generates what tools/generate_reference.py writes: man pages, shell completion, reference pages.

Everything comes from the programs' own tables of options, so that it cannot differ from
`--help`."""
