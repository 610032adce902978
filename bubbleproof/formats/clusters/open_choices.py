"""What a plan goes through where its file lists nothing: all that the framework runs.

A file without a table ``[plan]``, or whose table names a ``framework``, leaves every key open that
it does not list:

- context: the divisors c of the cards with ``LEAST_TOKENS`` of a sample or more on each card;
- expert: the divisors of the experts;
- chunks of a deployment: up to ``FEW_CHUNKS``, and those that cut the layers evenly up to
  ``MOST_CHUNKS``; of one rank, one;
- placements, backwards, slices and ZeRO levels: those of ``bubbleproof.frameworks``;
- scopes and cuts: those of the framework;
- the other sizes as without a framework: all that divide.

A listed value stays where the framework runs it; a list of which it runs nothing is refused.

A table that names no framework, of a cluster that does, opens nothing: all is as it lists, as far
as the framework runs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING

from bubbleproof.costs.combinations import Combination, CombinationCosts, Lists
from bubbleproof.costs.transformer import Transformer
from bubbleproof.formats.errors import UnusableInput
from bubbleproof.frameworks import Framework, framework_choices
from bubbleproof.theory.pipelines.placement import stage_ranks

if TYPE_CHECKING:
    from bubbleproof.formats.layouts.cluster_layout import ClusterPlanLayout

LEAST_TOKENS = 1024  # of a sample on a card, where the file lists no context
FEW_CHUNKS, MOST_CHUNKS = 8, 20
WAVE = "wave"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChoices:
    """The framework of a plan, and the keys of its table that the file lists.

    ``layers`` are the model's, whose head reads the embedding's weights where it is ``tied``.
    """

    framework: str
    listed: frozenset[str]
    layers: int
    tied: bool = False

    @property
    def runs(self) -> Framework:
        """What the framework runs."""
        return framework_choices(self.framework)

    def takes(self, one: Combination) -> bool:
        """Whether the framework runs such a deployment, and it is no other's double."""
        return not self.refused(one)

    def refusal(self, one: CombinationCosts, chunks: int) -> str:
        """Why the framework does not run so many chunks of a deployment; empty where it does."""
        at, runs, name = one.combination, self.runs, self.framework
        if chunks > 1 and runs.orders and at.pipeline == 1:
            return f"{name} runs 1 chunk without a pipeline, not {chunks}"
        if chunks > 1 and not runs.chunks:
            return f"{name} runs 1 chunk per rank, not {chunks}"
        if (at.context > 1 and not runs.context) or (at.expert > 1 and not runs.expert):
            return f"{name} runs context 1 and expert 1, not {at.context} and {at.expert}"
        if chunks > 1 and not _in_groups(runs, one):
            return (
                f"{name} runs {chunks} chunks per rank in groups of {at.pipeline} microbatches or "
                f"more, which {one.microbatches} microbatches do not make"
            )
        return self.too_few(one) or self.refused(at, is_told=True)

    def too_few(self, one: CombinationCosts) -> str:
        """Why the framework does not run so few microbatches; empty where it does."""
        ranks = one.combination.pipeline
        if not self.runs.fills or one.microbatches >= ranks or ranks == 1:
            return ""
        return (
            f"{self.framework} runs {ranks} ranks with as many microbatches or more, "
            f"not {one.microbatches}"
        )

    def refused(self, one: Combination, *, is_told: bool = False) -> str:
        """Why the framework does not run such sizes; empty where it does. One that the user has
        told is nobody's double: its experts may be spread over tensor ranks too."""
        runs = self.runs
        levels = [
            level
            for level in (runs.staged_zero if one.pipeline > 1 else runs.zero)
            if one.context == 1 or level in runs.sharded_zero
        ]
        if one.zero not in levels:
            listed = ", ".join(map(str, levels))
            return f"{self.framework} runs ZeRO {listed} of such a deployment, not {one.zero}"
        if one.scope not in runs.scopes:
            return f"{self.framework} recomputes {' or '.join(runs.scopes)}, not {one.scope}"
        if self.tied and not runs.ties and one.pipeline > 1:
            return f"{self.framework} runs no head tied to another rank's embedding: pipeline = [1]"
        if one.precision and (why := runs.precision_refused(one.precision)):
            return why
        is_told = is_told or "expert" in self.listed
        over = one.experts_counted() if is_told else one.expert  # none is a double
        if one.data % over:
            nearest = gcd(one.expert, one.data)
            return f"expert {one.expert} does not divide data {one.data}; use expert = [{nearest}]"
        return self.runs.experts_refused(
            expert=one.expert, data=one.data, context=one.context, tensor=one.tensor, zero=one.zero
        )

    def shapes_of(self, told: ClusterPlanLayout, one: CombinationCosts) -> ClusterPlanLayout:
        """The shapes of one deployment's pipeline."""
        return told.model_copy(update=self._shapes(told, one))

    def _shapes(self, told: ClusterPlanLayout, one: CombinationCosts) -> dict[str, object]:
        ranks, runs = one.combination.pipeline, self.runs
        chunks = told.chunks if "chunks" in self.listed else self._chunks(ranks)
        if not runs.chunks or not _in_groups(runs, one):
            chunks = [v for v in chunks if v == 1]
        if ranks == 1:  # without a pipeline nothing is interleaved
            chunks = chunks[:1] if runs.lone_chunks else [1]
        found: dict[str, object] = {"chunks": chunks or [1]}
        is_alone = ranks == 1 and "backward" not in self.listed
        for key in ("placements", "backward", "slices"):
            values = list(getattr(runs, key))
            if key in self.listed:
                given = getattr(told, key) or values[:1]  # no list of backwards: whole ones
                values = [each for each in given if not _is_foreign(each, values)]
            if key == "placements" and runs.waves:
                values = _waves_of(values, ranks, [v for v in chunks if v in runs.waves])
            found[key] = values[:1] if is_alone else values
        return found

    def _chunks(self, ranks: int) -> list[int]:
        most = min(self.layers // ranks, MOST_CHUNKS)
        found = [v for v in range(1, most + 1) if v <= FEW_CHUNKS or self.layers % (v * ranks) == 0]
        return found or [1]


def _waves_of(placements: Sequence[object], ranks: int, chunks: Sequence[int]) -> list[object]:
    """The placements, a wave as the rank of each stage of those chunks alone."""
    waves = [list(stage_ranks(WAVE, num_ranks=ranks, num_chunks=v)) for v in chunks]
    others = [each for each in placements if each != WAVE]
    return [*others, *waves] if len(others) < len(placements) else others


def _in_groups(runs: Framework, one: CombinationCosts) -> bool:
    """Whether it runs several chunks of so many microbatches, of one rank too."""
    ranks = one.combination.pipeline
    return not runs.groups or ranks == 1 or one.microbatches >= ranks  # all of them: one group


def shapes_told(shapes: ClusterPlanLayout) -> dict[str, object]:
    """The shapes as keys of a problem file's table."""
    return {key: getattr(shapes, key) for key in ("chunks", "placements", "backward", "slices")}


def open_choices(
    told: ClusterPlanLayout | None, framework: str, model: Transformer, *, is_open: bool = True
) -> OpenChoices:
    """What a table leaves open under a framework.

    Parameters
    ----------
    is_open
        Whether what it does not list is open; else it is as without a framework.

    Raises ``UnusableInput`` for a list of which the framework runs nothing.
    """
    listed = frozenset() if told is None else frozenset(told.model_fields_set)
    if not is_open and told is not None:
        listed = frozenset(type(told).model_fields)
    found = OpenChoices(framework=framework, listed=listed, layers=model.layers, tied=model.tied)
    if told is not None:
        _require_run(found, told)
    return found


def open_lists(
    lists: Lists, opened: OpenChoices, model: Transformer, cards: int, sequence: int
) -> Lists:
    """The lists with all that is open in them."""
    runs, listed = opened.runs, opened.listed
    if "scope" not in listed:
        lists = replace(lists, scope=tuple(each for each in lists.scope if each in runs.scopes))
    if "zero" not in listed:
        lists = replace(lists, zero=tuple(sorted({*runs.zero, *runs.staged_zero})))
    if "context" not in listed and runs.context:
        sizes = _divisors(cards)
        fits = tuple(c for c in sizes if c == 1 or sequence >= c * LEAST_TOKENS)
        lists = replace(lists, context=tuple(c for c in fits if sequence % c == 0))
    if "expert" not in listed and runs.expert and model.experts:
        lists = replace(lists, expert=tuple(e for e in _divisors(model.experts) if cards % e == 0))
    return lists


def _divisors(number: int) -> tuple[int, ...]:
    return tuple(n for n in range(1, number + 1) if number % n == 0)


def _is_foreign(each: object, values: Sequence[object]) -> bool:
    """Whether a listed value is none that the framework runs; lists of ranks are no names."""
    return each not in values


def _require_run(opened: OpenChoices, told: ClusterPlanLayout) -> None:
    runs, name = opened.runs, opened.framework
    known: dict[str, Sequence[object]] = {
        "zero": sorted({*runs.zero, *runs.staged_zero}),
        "placements": runs.placements,
        "backward": runs.backward,
    }
    if name != "any":
        known["slices"] = runs.slices
    if not runs.chunks:
        known["chunks"] = (1,)
    if not runs.context:
        known["context"] = (1,)
    known["scope"] = runs.scopes
    if runs.waves and "placements" in opened.listed and set(told.placements) == {WAVE}:
        known["chunks"] = runs.waves
    for key, values in known.items():
        given = getattr(told, key) or values[:1]
        if key in opened.listed and all(_is_foreign(each, values) for each in given):
            expected = f"values that {name} runs, such as {list(values)}"
            raise UnusableInput(f"plan.{key}", expected, f"{given}")
