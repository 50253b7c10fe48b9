"""The simulator: collectives over computation on machines that are not at hand."""
