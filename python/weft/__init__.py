"""Weft's command line, lab, benchmark driver and reports.

Why Python: everything here runs once per job. What runs once per rank is native (src/launch).
"""

__version__ = "0.1.0"
