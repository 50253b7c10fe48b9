"""Measures how long programs take with each MPI library, engine and placement (`weft bench`)."""
