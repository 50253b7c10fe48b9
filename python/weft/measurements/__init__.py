"""Results of measurements: samples, statistics, files, and conclusions from them."""
