"""Results of measurements: their samples, statistics, files, and what follows from them."""
