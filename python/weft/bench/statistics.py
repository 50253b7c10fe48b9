"""Medians with confidence intervals, who leads, and the amounts of computation to measure.

Why order statistics: the interval of a median needs no assumption on the distribution of times
(Hoefler, Belli, SC15, rule 5: nonparametric intervals). Why here: the demo, the terminal, the pages
and comparisons must call the same thing faster.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache

from weft.bench.result import FEWEST, Statistic

TOLERANCE = 0.02  # half-width of the 95 % interval, as a share of the median
# Below this share of the time, two candidates count as equally fast.
NOTICEABLE = 0.02
FASTER, SAME, SLOWER = "faster", "same", "slower"
# Of the fastest candidate's communication, and of the slowest's.
LOWEST, HIGHEST = 0.1, 2.0


@lru_cache
def interval_place(n: int) -> int:
    """The 0-based place k: the k-th smallest and k-th largest enclose the median with 95 %."""
    below, place = 0.0, 0
    for k in range(n // 2):
        # By logarithms: from 1,030 samples on, binomial coefficients are no floating-point numbers.
        log_ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        below += math.exp(log_ways - n * math.log(2))
        if 2 * below > 0.05:
            break
        place = k
    return place


def of(samples: Sequence[float]) -> Statistic:
    ordered = sorted(samples)
    place = interval_place(len(ordered))
    return Statistic(
        median=statistics.median(ordered),
        low=ordered[place],
        high=ordered[-1 - place],
        n=len(ordered),
    )


def leads(fast: Statistic, slow: Statistic) -> bool:
    """Noticeably, and beyond the confidence intervals of both, which both must have."""
    apart = fast.median < (1 - NOTICEABLE) * slow.median and fast.high < slow.low
    return apart and fast.is_certain and slow.is_certain


def verdict(one: Statistic, other: Statistic) -> str:
    """Whether `one` is faster than, slower than or the same as `other`."""
    if leads(one, other):
        return FASTER
    return SLOWER if leads(other, one) else SAME


def ratio(one: Statistic, other: Statistic) -> Statistic:
    """one / other: of the medians, with the least and the most that both intervals permit."""
    return Statistic(
        median=one.median / other.median,
        low=one.low / other.high,
        high=one.high / other.low,
        n=min(one.n, other.n),
    )


def settled(samples: Sequence[float], tolerance: float = TOLERANCE) -> bool:
    """Enough samples: the interval of the median is within the tolerance."""
    return len(samples) >= FEWEST and of(samples).half_width <= tolerance


def amounts_us(communication_us: Sequence[float], count: int) -> list[float]:
    """`count` amounts of computation, evenly over the range that shows all candidates' effect.

    Below the range even the fastest candidate is barely covered; above, all of the slowest is.
    """
    fastest, slowest = min(communication_us), max(communication_us)
    if count == 1:
        return [fastest]
    low, high = LOWEST * fastest, HIGHEST * slowest
    return [low + (high - low) * i / (count - 1) for i in range(count)]
