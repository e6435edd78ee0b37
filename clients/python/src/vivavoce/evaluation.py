"""Computes error rates from the trials that `vivavoce evaluate --scores trials.csv` writes, exactly as the command does."""
from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trials:
    """A list of trials: each compares an enrolled voice with a tested recording. One array for each column."""

    same: NDArray[np.bool_]
    """True if both are the same person."""
    ratio: Floats
    """Log-likelihood ratio. Higher means more likely the same person."""
    enrolled_speaker: NDArray[np.int64]
    tested_speaker: NDArray[np.int64]
    """The numbers of the two speakers, which intervals need."""
    score: Floats | None = None
    """Cosine similarity."""
    enrolled: NDArray[np.str_] | None = None
    tested: NDArray[np.str_] | None = None
    """The names of the files."""
    net_speech_seconds: Floats | None = None
    snr_db: Floats | None = None

    def where(self, chosen: NDArray[np.bool_]) -> "Trials":
        """Returns the selected trials: `trials.where(trials.net_speech_seconds >= 4)`."""
        columns: dict[str, Any] = {name: None if column is None else column[chosen] for name, column in vars(self).items()}
        return Trials(**columns)


@dataclass(frozen=True)
class RatePoints:
    """Both error rates at each threshold, from accepting everybody to rejecting everybody."""

    threshold: Floats
    """A ratio at or above it is accepted."""
    fmr: Floats
    """False-match rate: share of different-person trials that are accepted."""
    fnmr: Floats
    """False-non-match rate: share of same-person trials that are rejected."""


Figure = Callable[[Trials, "Floats | None"], float]


def read_trials(path: str | os.PathLike[str]) -> Trials:
    """Reads a file that `vivavoce evaluate --scores` has written."""
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    needed = ["same", "llr", "enrolled_speaker", "tested_speaker"]
    missing = [name for name in needed if not rows or name not in rows[0]]
    if missing:
        raise ValueError(f'{path}: expected the trials of "vivavoce evaluate --scores"; it has no {", ".join(missing)}')

    def numbers(name: str) -> Floats:
        return np.array([float(row[name]) if row[name] != "" else np.nan for row in rows])

    return Trials(
        same=numbers("same") == 1,
        ratio=numbers("llr"),
        enrolled_speaker=numbers("enrolled_speaker").astype(np.int64),
        tested_speaker=numbers("tested_speaker").astype(np.int64),
        score=numbers("score"),
        enrolled=np.array([row["enrolled"] for row in rows]),
        tested=np.array([row["tested"] for row in rows]),
        net_speech_seconds=numbers("net_speech_s"),
        snr_db=numbers("snr_db"),
    )


def trials_of(same: ArrayLike, ratio: ArrayLike, enrolled_speaker: ArrayLike, tested_speaker: ArrayLike) -> Trials:
    """Makes trials from your own columns. Speakers can be numbers or names."""
    enrolled, tested = np.asarray(enrolled_speaker), np.asarray(tested_speaker)
    numbers = {name: number for number, name in enumerate(dict.fromkeys([*enrolled.tolist(), *tested.tolist()]))}
    trials = Trials(
        same=np.asarray(same, dtype=bool),
        ratio=np.asarray(ratio, dtype=np.float64),
        enrolled_speaker=np.array([numbers[name] for name in enrolled.tolist()]),
        tested_speaker=np.array([numbers[name] for name in tested.tolist()]),
    )
    lengths = {name: len(column) for name, column in vars(trials).items() if column is not None}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"all columns must have the same length, got {lengths}")
    return trials


def rate_points(trials: Trials, weights: Floats | None = None) -> RatePoints:
    """Returns the error rates at every distinct ratio. Equal ratios are always on the same side of a threshold."""
    _check(trials)
    order = np.argsort(trials.ratio, kind="stable")
    ratio, same = trials.ratio[order], trials.same[order]
    weight = np.ones(len(ratio)) if weights is None else weights[order]
    of_same, of_different = np.cumsum(weight * same), np.cumsum(weight * ~same)
    if of_same[-1] <= 0 or of_different[-1] <= 0:
        raise ValueError("trials of both kinds must have a weight above 0: same and different persons")
    starts = np.flatnonzero(np.r_[True, ratio[1:] != ratio[:-1]])
    before = starts - 1
    rejected_same = np.where(starts == 0, 0.0, of_same[before])
    rejected_different = np.where(starts == 0, 0.0, of_different[before])
    return RatePoints(
        threshold=np.r_[ratio[starts], np.inf],
        fmr=np.r_[np.maximum(0.0, 1 - rejected_different / of_different[-1]), 0.0],
        fnmr=np.r_[np.minimum(1.0, rejected_same / of_same[-1]), 1.0],
    )


def equal_error_rate(trials: Trials, weights: Floats | None = None) -> float:
    """Returns the rate at which both error rates are equal, interpolated linearly between the two nearest thresholds."""
    points = rate_points(trials, weights)
    at = int(np.argmax(points.fnmr >= points.fmr))
    before = points.fmr[at - 1] - points.fnmr[at - 1]
    after = points.fnmr[at] - points.fmr[at]
    share = before / (before + after) if before + after > 0 else 0.0
    return float(points.fmr[at - 1] + share * (points.fmr[at] - points.fmr[at - 1]))


def fnmr_at_fmr(trials: Trials, fmr: float, weights: Floats | None = None) -> float:
    """Returns the FNMR at the lowest threshold whose FMR is at most `fmr`."""
    if not 0 <= fmr <= 1:
        raise ValueError(f"fmr must be a rate from 0 to 1, such as 0.01 for 1 %, got {fmr}")
    points = rate_points(trials, weights)
    # Rates are sums of floats: with the tolerance, 1 of 100 counts as 1 %.
    return float(points.fnmr[np.argmax(points.fmr <= fmr + 1e-12)])


def cllr(trials: Trials, weights: Floats | None = None) -> float:
    """Returns the cost of the log-likelihood ratios (Cllr) in bits: 0 is perfect, 1 is the cost of ratios that say nothing."""
    _check(trials)
    weight = np.ones(len(trials.ratio)) if weights is None else weights
    costs = np.logaddexp(0, np.where(trials.same, -trials.ratio, trials.ratio)) / np.log(2)
    means = [np.average(costs[kind], weights=weight[kind]) for kind in (trials.same, ~trials.same)]
    return float(np.mean(means))


def det_points(trials: Trials) -> tuple[Floats, Floats]:
    """Returns FMR and FNMR for a DET curve: draw them on normal deviates (scipy.stats.norm.ppf). Leaves out rates of 0 and 1."""
    points = rate_points(trials)
    drawn = (points.fmr > 0) & (points.fnmr > 0) & (points.fmr < 1) & (points.fnmr < 1)
    return points.fmr[drawn], points.fnmr[drawn]


def bootstrap_interval(
    trials: Trials, figure: Figure = equal_error_rate, *, resamples: int = 1000, confidence: float = 0.95, seed: int = 1
) -> tuple[float, float] | None:
    """Returns the confidence interval of a figure. `figure(trials, weights)` is a function such as `equal_error_rate`.

    Draws speakers with replacement, and weights each trial by how often its speakers were drawn. Trials of one speaker are not
    independent, so drawing trials would give intervals that are far too narrow. Returns `None` if there are too few speakers.
    A rate without errors has none in any resample, so its interval is 0 to 0, which says nothing about other people; the command
    `vivavoce evaluate` gives an upper limit instead: 1 - 0.05 ** (1 / speakers).
    """
    if resamples != int(resamples) or resamples < 1:
        raise ValueError(f"resamples must be a whole number of at least 1, got {resamples}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, such as 0.95 for 95 %, got {confidence}")
    known = dict.fromkeys([*trials.enrolled_speaker.tolist(), *trials.tested_speaker.tolist()])
    numbers = {speaker: number for number, speaker in enumerate(known)}
    enrolled = np.array([numbers[one] for one in trials.enrolled_speaker.tolist()])
    tested = np.array([numbers[one] for one in trials.tested_speaker.tolist()])
    if len(numbers) < 3:
        return None
    values: list[float] = []
    for resample in range(int(resamples)):
        draws = _uniform(seed, resample * len(numbers), len(numbers))
        drawn = np.bincount((draws * len(numbers)).astype(np.int64), minlength=len(numbers)).astype(np.float64)
        weights = np.where(enrolled == tested, drawn[enrolled], drawn[enrolled] * drawn[tested])
        if weights[trials.same].sum() > 0 and weights[~trials.same].sum() > 0:
            values.append(figure(trials, weights))
    finite = [value for value in values if np.isfinite(value)]
    if len(finite) < 20:
        return None
    low, high = np.quantile(finite, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _check(trials: Trials) -> None:
    if np.isnan(trials.ratio).any():
        raise ValueError(f"ratio {int(np.isnan(trials.ratio).argmax())} is not a number")
    if trials.same.all() or not trials.same.any():
        same, different = trials.same.sum(), (~trials.same).sum()
        raise ValueError(f"trials of both kinds are needed, got {same} of the same person and {different} of different persons")


def _uniform(seed: int, start: int, count: int) -> Floats:
    """Returns random numbers of the generator that the command uses (mulberry32), so that the same seed gives the same interval."""
    steps = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    state = (np.uint64(seed) + steps * np.uint64(0x6D2B79F5)).astype(np.uint32)
    t = (state ^ (state >> np.uint32(15))) * (state | np.uint32(1))
    t ^= t + (t ^ (t >> np.uint32(7))) * (t | np.uint32(61))
    uniform: Floats = (t ^ (t >> np.uint32(14))).astype(np.float64) / 4294967296
    return uniform
