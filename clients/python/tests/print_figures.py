"""Prints the figures of a file of trials as JSON. Run by test/python of the repository, which compares them with the command's own."""
import json
import sys

from vivavoce import evaluation


def refusal(work):
    try:
        return f"not refused: {work()}"
    except ValueError as error:
        return str(error)


trials = evaluation.read_trials(sys.argv[1])
fmr, fnmr = evaluation.det_points(trials)
own = evaluation.trials_of(trials.same, trials.ratio, trials.enrolled_speaker, trials.tested_speaker)
assert evaluation.equal_error_rate(own) == evaluation.equal_error_rate(trials)
print(
    json.dumps(
        {
            "equalErrorRate": evaluation.equal_error_rate(trials),
            "fnmrAt1": evaluation.fnmr_at_fmr(trials, 0.01),
            "cllr": evaluation.cllr(trials),
            "interval": evaluation.bootstrap_interval(trials, resamples=200),
            "fnmrInterval": evaluation.bootstrap_interval(
                trials, lambda some, weights: evaluation.fnmr_at_fmr(some, 0.01, weights), resamples=200
            ),
            "det": [fmr.tolist(), fnmr.tolist()],
            "refusals": [
                refusal(work)
                for work in (
                    lambda: evaluation.fnmr_at_fmr(trials, 2),
                    lambda: evaluation.fnmr_at_fmr(trials, float("nan")),
                    lambda: evaluation.bootstrap_interval(trials, confidence=95),
                    lambda: evaluation.bootstrap_interval(trials, resamples=0),
                    lambda: evaluation.cllr(trials.where(trials.same)),
                )
            ],
            "longSpeech": int(len(trials.where(trials.net_speech_seconds >= 4).ratio)),
        }
    )
)
