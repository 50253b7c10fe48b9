"""The lab: MPI ranks in network namespaces, joined by links of a chosen rate, on one machine.

Why: overlap shows only where communication takes time that no core has to work for.
"""

from weft.lab.lab import Lab, LabError, LabResult, LabUnavailable, lab_problem

__all__ = ["Lab", "LabError", "LabResult", "LabUnavailable", "lab_problem"]
