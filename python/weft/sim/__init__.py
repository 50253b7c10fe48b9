"""Simulates collectives overlapped with computation on other machines."""
