"""`weft try`: a program without Weft and with it, in turn, until it is clear which is faster."""

MOST_ROUNDS = 1000  # that a trial may have
