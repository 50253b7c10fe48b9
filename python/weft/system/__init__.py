"""This installation of Weft, the MPI libraries beside it, and what this machine offers them."""
