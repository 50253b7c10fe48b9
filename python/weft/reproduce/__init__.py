"""The papers' findings, put to the test on this machine and in the simulator."""
