"""Medians with confidence intervals, comparisons, and the amounts of computation to measure.

Order statistics give an interval of the median without an assumption on the distribution of times
(Hoefler, Belli, SC15, rule 5: nonparametric intervals). The demo, the terminal, the pages and
comparisons all use this module, so that they agree on what is faster."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import lru_cache

from weft.measurements.result import FEWEST, Statistic

LEVEL = 0.05  # probability with which an interval may miss the median
TOLERANCE = 0.02  # accepted half-width of the 95 % interval, as a share of the median
# Below this share of the time, two candidates count as equally fast.
NOTICEABLE = 0.02
FASTER, SAME, SLOWER = "faster", "same", "slower"
# The amounts of computation reach from this multiple of the fastest candidate's communication to
# this multiple of the slowest one's.
LOWEST, HIGHEST = 0.1, 2.0


@lru_cache
def interval_place(n: int, level: float = LEVEL) -> int:
    """Returns the 0-based place k at which the interval's ends are the k-th smallest and the k-th
    largest sample. The interval misses the median with at most the probability `level`."""
    below, place = 0.0, 0
    for k in range(n // 2):
        # Logarithms are used, since from 1,030 samples on binomial coefficients exceed the range of
        # floating-point numbers.
        log_ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        below += math.exp(log_ways - n * math.log(2))
        if 2 * below > level:
            break
        place = k
    return place


def fewest(level: float) -> int:
    """Returns the least number of samples whose range misses the median with at most this
    probability."""
    return math.ceil(1 - math.log2(level))


def ever_missed(looks: int, level: float) -> float:
    """Returns the probability that any of the intervals, one after each sample, misses the median.

    A sample lies above or below the median with equal probability. An interval misses the median if
    too few samples lie on one of its sides."""
    first, missed = fewest(level), 0.0
    # Element i is the probability that i samples lie above the median and that no interval has
    # missed it so far.
    by_count = [1.0]
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
    """Returns the level for each interval at which all of them together miss the median with at
    most the probability `all_looks`."""
    # The lower bound is Bonferroni's, which holds for dependent events.
    low, high = all_looks / max(1, looks), all_looks
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
    """Returns whether `fast` is noticeably shorter than `slow`, beyond the confidence intervals of
    both. Both must have enough samples."""
    apart = fast.median < (1 - NOTICEABLE) * slow.median and fast.high < slow.low
    return apart and fast.is_certain and slow.is_certain


def verdict(one: Statistic, other: Statistic) -> str:
    """Returns whether `one` is faster than, slower than or the same as `other`."""
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
    """Returns whether there are enough samples: the interval of the median is within the
    tolerance."""
    return len(samples) >= FEWEST and of(samples).half_width <= tolerance


def amounts_us(communication_us: Sequence[float], count: int) -> list[float]:
    """Returns `count` amounts of computation in us, evenly over the range in which all candidates
    show an effect.

    Below the range even the fastest candidate's communication is hardly hidden. Above it the
    slowest candidate's communication is hidden as a whole."""
    fastest, slowest = min(communication_us), max(communication_us)
    if count == 1:
        return [fastest]
    low, high = LOWEST * fastest, HIGHEST * slowest
    return [low + (high - low) * i / (count - 1) for i in range(count)]
