"""Runs a program alternately without Weft and with it, until it is clear which is faster (`weft
try`)."""

MOST_ROUNDS = 1000  # most rounds of a trial
