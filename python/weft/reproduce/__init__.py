"""The papers' figures, drawn from the simulator beside what was published."""
