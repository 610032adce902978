"""The fast evaluation of a fit against the schedule's makespan."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bubbleproof.costs.times.along_paths import paths, predicted, prepared
from bubbleproof.costs.times.calibration import uncalibrated
from bubbleproof.costs.times.card_files import card
from bubbleproof.costs.times.constants import NAMES
from bubbleproof.costs.times.critical_paths import graph, longest_path
from bubbleproof.costs.times.estimation import estimated_ms
from bubbleproof.costs.times.job_rows import rows_of
from bubbleproof.theory.families import family
from bubbleproof.theory.pipelines.pipeline import Pipeline
from proofs_tests.costs.measured_cases import A100, B200
from proofs_tests.zeros import zero_or


@pytest.mark.parametrize(("stages", "microbatches"), [(2, 1), (2, 5), (3, 2), (4, 9), (6, 13)])
def test_the_longest_path_is_the_makespan(stages: int, microbatches: int) -> None:
    draw = random.Random(stages * 100 + microbatches)
    for _ in range(20):
        forward = [zero_or(draw, 1, 40) for _ in range(stages)]
        backward = [zero_or(draw, 1, 80) for _ in range(stages)]
        message, latency = draw.choice([(0, 0), (0, 7), (3, 2), (10, 0)])
        pipeline = Pipeline(
            num_ranks=stages,
            num_microbatches=microbatches,
            forward=tuple(forward),
            backward=tuple(backward),
            message=message,
            latency=latency,
            bandwidth=1,
            duplex="full",
        )
        schedule = family("1f1b").schedule(pipeline)
        problem = pipeline.problem()
        ends = schedule.start + problem.duration[problem.locate(schedule.program.actions)]
        wait = float(message + latency)
        length, path = longest_path(
            graph(stages, microbatches), forward, backward, wait, [0] * stages
        )
        if wait <= min(forward) or not message:  # no message waits for another on its link
            assert length == ends.max()
        assert path.forwards.sum() + path.backwards.sum() >= 1
        assert path.messages * wait <= length


def test_steps_after_the_last_backward_belong_to_the_path() -> None:
    """Two stages, one microbatch: F 1 + 1, B 2 + 2; stage 1 ends at 4 and steps for 9: 13."""
    length, path = longest_path(graph(2, 1), [1, 1], [2, 2], 0, [1, 9])
    assert (length, path.ends_at) == (13, 1)
    assert longest_path(graph(2, 1), [1, 1], [2, 2], 0, [1, 2])[0] == 6 + 1


@pytest.mark.parametrize(("text", "name"), [(A100, "a100-80gb"), (B200, "b200")])
def test_a_fit_sees_what_estimates_tell(text: str, name: str) -> None:
    by = uncalibrated(card(name))
    rows = by.taken(rows_of(text, measured=False))
    of = prepared(rows, by.card)
    ones = {name: np.ones(len(rows)) for name in NAMES}
    fast = predicted(of, paths(of, ones), ones)
    assert fast == pytest.approx(np.array(estimated_ms(rows, by)), rel=1e-6)
