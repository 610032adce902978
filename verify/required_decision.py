"""Whether a problem is what its pipeline requires, as the decision of a rule."""

from __future__ import annotations

from bubbleproof.theory.model.problem import Problem
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.verify.finding import Rule
from bubbleproof.verify.required import differences
from bubbleproof.verify.verdict import RuleDecision


def check_required(pipeline: Pipeline, problem: Problem) -> RuleDecision:
    """Whether the problem is what the pipeline requires, as the decision of a rule of its own."""
    return RuleDecision.of_sentences(Rule.REQUIRED, differences(pipeline, problem))
