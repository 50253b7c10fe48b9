"""`weft bench`: how long programs take with each MPI library, engine and placement."""
