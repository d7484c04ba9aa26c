"""What is said about a few numbers: pure, tested with tables.

A summary is what the reports show: median, least and greatest, and how many.  A
difference of means is stated as in the thesis (and by FreeBSD's ministat): with a
confidence interval of 95 % by Student's t with the pooled variance.
"""

import dataclasses
import math
import statistics

CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Summary:
    median: float
    low: float
    high: float
    count: int


@dataclasses.dataclass(frozen=True)
class Difference:
    """other - base, and half the width of its confidence interval."""
    delta: float
    half: float
    percent: float       # both as shares of the mean of base, in percent
    percent_half: float
    significant: bool    # 0 is not in the interval


def summary(values):
    """None for no values: a median of nothing is not 0."""
    values = [v for v in values if v is not None]
    if not values:
        return None
    return Summary(statistics.median(values), min(values), max(values), len(values))


def t_within(t, df):
    """How likely |T| <= t is with df degrees of freedom, a whole number: Abramowitz
    and Stegun, 26.7.3 and 26.7.4."""
    theta = math.atan2(t, math.sqrt(df))
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = df % 2
    term = cosine if odd else 1.0
    total = 0.0 if df == 1 else term
    for i in range(3 if odd else 2, df - 1, 2):
        term *= cosine * cosine * (i - 1) / i
        total += term
    return 2 / math.pi * (theta + sine * total) if odd else sine * total


def t_quantile(df, confidence=CONFIDENCE):
    """The t that |T| stays below with this probability."""
    if df < 1 or not 0 < confidence < 1:
        raise ValueError(f"no quantile {confidence} for {df} degrees of freedom")
    low, high = 0.0, 1.0
    while t_within(high, df) < confidence:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if t_within(middle, df) < confidence:
            low = middle
        else:
            high = middle
    return high


def mean_interval(values, confidence=CONFIDENCE):
    """Mean and half the width of its confidence interval; two values at least."""
    half = t_quantile(len(values) - 1, confidence) * statistics.stdev(values)
    return statistics.fmean(values), half / math.sqrt(len(values))


def difference(base, other, confidence=CONFIDENCE):
    """None if there are too few values to say anything."""
    if len(base) < 2 or len(other) < 2:
        return None
    df = len(base) + len(other) - 2
    pooled = math.sqrt(((len(base) - 1) * statistics.variance(base) +
                        (len(other) - 1) * statistics.variance(other)) / df)
    half = t_quantile(df, confidence) * pooled * math.sqrt(1 / len(base) + 1 / len(other))
    mean = statistics.fmean(base)
    delta = statistics.fmean(other) - mean
    percent = 100 / mean if mean else math.nan
    return Difference(delta, half, delta * percent, half * abs(percent), abs(delta) > half)


def ratio(a, b):
    """None where there is nothing to divide by, or nothing to divide."""
    return None if a is None or not b else a / b
