"""The lab runs MPI ranks in network namespaces of one machine, which are joined by links of a
chosen rate.

Overlap is visible only if communication takes time without using a core, as on such links."""

from weft.lab.lab import Lab, LabError, LabResult, LabUnavailable, lab_problem

__all__ = ["Lab", "LabError", "LabResult", "LabUnavailable", "lab_problem"]
