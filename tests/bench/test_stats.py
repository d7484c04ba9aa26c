"""bench/laboratory/stats.py against published values."""

import math

import lab
import pytest

from laboratory import stats

assert lab

# Two-sided, from the table of the NIST/SEMATECH e-Handbook of Statistical Methods,
# 1.3.6.7.2 (columns 0.95 and 0.975).
T_TABLE = {
    1: (6.314, 12.706), 2: (2.920, 4.303), 3: (2.353, 3.182), 4: (2.132, 2.776),
    5: (2.015, 2.571), 6: (1.943, 2.447), 9: (1.833, 2.262), 10: (1.812, 2.228),
    15: (1.753, 2.131), 20: (1.725, 2.086), 30: (1.697, 2.042), 60: (1.671, 2.000),
    100: (1.660, 1.984),
}


@pytest.mark.parametrize("df", T_TABLE)
def test_quantiles_of_students_t(df):
    assert round(stats.t_quantile(df, 0.90), 3) == T_TABLE[df][0]
    assert round(stats.t_quantile(df, 0.95), 3) == T_TABLE[df][1]


def test_many_degrees_of_freedom_are_the_normal_distribution():
    assert round(stats.t_quantile(100_000), 3) == 1.960


@pytest.mark.parametrize("df, confidence", [(0, 0.95), (3, 0.0), (3, 1.0)])
def test_no_quantile_of_nothing(df, confidence):
    with pytest.raises(ValueError):
        stats.t_quantile(df, confidence)


# Student's own example: additional hours of sleep, two drugs, ten patients (The
# Probable Error of a Mean, 1908).  R: t.test(extra ~ group, data = sleep,
# var.equal = TRUE) gives the interval of x - y as -3.363874 to 0.203874.
SLEEP = ([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
         [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])


def test_difference_of_means_as_student_had_it():
    found = stats.difference(*SLEEP)
    assert round(found.delta, 6) == 1.58
    assert round(found.delta - found.half, 6) == -0.203874
    assert round(found.delta + found.half, 6) == 3.363874
    assert not found.significant
    assert round(found.percent, 4) == round(100 * 1.58 / 0.75, 4)
    assert math.isclose(found.percent_half, 100 * found.half / 0.75)


def test_interval_of_a_mean():
    # R: t.test(sleep$extra[1:10]) gives -0.5297804 to 2.0297804.
    mean, half = stats.mean_interval(SLEEP[0])
    assert round(mean - half, 6) == -0.529780 and round(mean + half, 6) == 2.029780


def test_a_real_difference_is_found():
    found = stats.difference([100.0, 101.0, 99.0], [88.0, 89.0, 87.0])
    assert found.significant and found.delta == -12 and found.percent == -12


@pytest.mark.parametrize("base, other", [([], []), ([1.0], [2.0, 3.0]), ([1.0, 2.0], [3.0])])
def test_too_few_values_say_nothing(base, other):
    assert stats.difference(base, other) is None


@pytest.mark.parametrize("values, expected", [
    ([], None),
    ([None, None], None),
    ([5], (5, 5, 5, 1)),
    ([3, 1, 2], (2, 1, 3, 3)),
    ([4, 1, 3, 2], (2.5, 1, 4, 4)),
    ([None, 7, 9], (8, 7, 9, 2)),
])
def test_summary(values, expected):
    found = stats.summary(values)
    assert found == (expected and stats.Summary(*expected))


@pytest.mark.parametrize("a, b, expected", [(1, 2, 0.5), (1, 0, None), (1, None, None),
                                            (None, 2, None), (0, 2, 0)])
def test_ratio(a, b, expected):
    assert stats.ratio(a, b) == expected
