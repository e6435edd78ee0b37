"""Prints the figures of a file of trials as JSON. Run by test/python of the repository, which compares them with the command's own."""
import json
import sys

from vivavoce import evaluation

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
            "longSpeech": int(len(trials.where(trials.net_speech_seconds >= 4).ratio)),
        }
    )
)
