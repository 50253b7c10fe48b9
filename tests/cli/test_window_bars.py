"""The bars of the advisor's windows: what counts as right. No program runs."""

import sys
from dataclasses import replace

from advise_runs import made

from weft import installation
from weft.advise import analysis, sites

sys.path.append(str(installation.ROOT / "tools"))

import window_bars


def test_windows_are_held_against_the_closest_of_the_programs_own_times():
    site = analysis.analyse(made("MPI_Bcast", [(0, 0, 10), (1, 0, 10)])).sites[0]
    site.after = sites.Windows([2010.0, 5030.0, 2020.0], [2010.0, 5030.0, 2020.0])
    assert window_bars.held_against([2000.0, 5000.0], site) == (2020.0, 20.0)
    site.after = sites.Windows([0.0], [2000.0])  # no one figure
    assert window_bars.held_against([2000.0], site) == (None, 0.0)
    assert window_bars.held_against([2000.0], None) == (None, 0.0)


def test_windows_are_right_within_a_part_or_a_time():
    found = window_bars.Found("mpich", "C", "heap", 0.2, 200, 221, 21)
    assert not found.is_right and not found.is_missing
    assert replace(found, off_us=-20).is_right
    assert replace(found, own_us=2000, off_us=39).is_right
    unknown = replace(found, measured_us=None, off_us=0)
    assert unknown.is_missing and not replace(unknown, function="stack").is_missing
