"""Tests the papers' findings on this machine and in the simulator."""
