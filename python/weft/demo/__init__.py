"""Runs an unmodified MPI program without and with Weft until the gain is clear (`weft demo`)."""
