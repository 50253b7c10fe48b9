"""`weft try`: a program without Weft and with it, in turn, until it is clear which is faster."""

MOST_ROUNDS = 1000  # most rounds of a trial
