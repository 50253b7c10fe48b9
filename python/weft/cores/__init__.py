"""Chooses cores for communication: where threads run, and how many cores to give them."""
