"""Runs `python -m weft`: the subcommands that the native command `weft` hands over to Python."""

from weft.cli import main

main()
