"""`python -m weft`: the subcommands that the native `weft` hands over."""

from weft.cli import main

main()
