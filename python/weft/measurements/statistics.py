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

from weft.measurements.result import FEWEST, Statistic

LEVEL = 0.05  # how often an interval may miss the median
TOLERANCE = 0.02  # half-width of the 95 % interval, as a share of the median
# Below this share of the time, two candidates count as equally fast.
NOTICEABLE = 0.02
FASTER, SAME, SLOWER = "faster", "same", "slower"
# Bounds as multiples of the fastest candidate's communication, and of the slowest's.
LOWEST, HIGHEST = 0.1, 2.0


@lru_cache
def interval_place(n: int, level: float = LEVEL) -> int:
    """The 0-based place k: the k-th smallest and largest miss the median as often as `level`."""
    below, place = 0.0, 0
    for k in range(n // 2):
        # By logarithms: from 1,030 samples on, binomial coefficients are no floating-point numbers.
        log_ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        below += math.exp(log_ways - n * math.log(2))
        if 2 * below > level:
            break
        place = k
    return place


def fewest(level: float) -> int:
    """The number of samples from which on their range misses the median no more often."""
    return math.ceil(1 - math.log2(level))


def ever_missed(looks: int, level: float) -> float:
    """How often intervals of this level, made anew after each sample, ever miss the median.

    Each sample lies above the median or below it, as a coin falls. An interval misses the median
    where too few lie on one of its sides.
    """
    first, missed = fewest(level), 0.0
    by_count = [1.0]  # probability of so many samples above it, where none has missed it yet
    for n in range(1, looks + 1):
        pairs = zip([*by_count, 0.0], [0.0, *by_count])
        by_count = [(below + above) / 2 for below, above in pairs]
        if n < first:
            continue
        place = interval_place(n, level)
        for count in (*range(place + 1), *range(n - place, n + 1)):
            missed += by_count[count]
            by_count[count] = 0.0
    return missed


@lru_cache
def level_of_a_look(looks: int, all_looks: float) -> float:
    """The level of each look at which all of them together miss the median no more often."""
    low, high = all_looks / max(1, looks), all_looks  # the first keeps it whatever depends on what
    if ever_missed(looks, high) <= all_looks:
        return high
    while high / low > 1.02:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if ever_missed(looks, middle) <= all_looks else (low, middle)
    return low


def of(samples: Sequence[float], level: float = LEVEL) -> Statistic:
    ordered = sorted(samples)
    place = interval_place(len(ordered), level)
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
    """Returns one / other: the ratio of the medians, and the bounds that both intervals permit."""
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
