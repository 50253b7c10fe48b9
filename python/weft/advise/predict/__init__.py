"""`weft advise --predict`: the calls of a recorded run on another machine, by the simulator."""
