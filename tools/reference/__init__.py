"""What tools/generate_reference writes: man pages, shell completion, pages of the reference.

All of it comes from the programs' own tables of options, so that it cannot differ from `--help`.
"""
