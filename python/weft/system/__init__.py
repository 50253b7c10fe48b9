"""Describes this installation of Weft, the MPI libraries, and the machine's features that matter to
them."""
