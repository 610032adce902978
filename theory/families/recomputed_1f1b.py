"""1F1B with R per cent of every stage recomputed: the papers' baseline "1F1B+R=50%".

A stage of 1F1B is v groups of layers, each a stage of the pipeline (``block_orders``), and the
first k of each are recomputed just before their backward. R is k's share of v in per cent
(rounded), 50 unless given; without v there are as few groups as R takes. A tick is one
of a group: with tF = 1, tB = 2 a stage of two groups takes 2 and 4, and 1 more where half of it is
recomputed, as T-Pipe's Appendix C counts (T_unit = T_fwd / 2p).

The step takes (m+p-1)(v tF + v tB + k tF) and rank r holds min(p-r, m)(v-k) groups' activations, 1
where all are recomputed: R per cent less than 1F1B (swept). What a group keeps to be recomputed
from, the input, is neglected, as in the paper (``recompute.Recompute.kept`` counts it).

Source: T-Pipe sections 2.2, 4.2 and 6.1, Appendix C; the first layers of each stage as in
Megatron-LM's ``--recompute-method block`` (which of them does not change the time). Korthikanti et
al., "Reducing Activation Recomputation in Large Transformer Models" (MLSys 2023) recompute parts of
layers. Legal range: any p, m, v, and R that is k of v; at R = 0 it is 1F1B.

Where the papers say R per cent, a rank's v chunks are alike, so R per cent of its layers are k = R
v / 100 of them, and R = 50 of two chunks is one. Per cents are whole numbers: R stands for the k
whose share it is, rounded (R = 33 of three chunks is one, R = 67 is two)."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from bubbleproof.theory.families.base import Family
from bubbleproof.theory.families.block_orders import (
    block_program,
    even_blocks,
    recomputed_just_in_time,
)
from bubbleproof.theory.families.parameters import FamilyParameters
from bubbleproof.theory.model.schedule import Program
from bubbleproof.theory.pipelines.pipeline import Pipeline

HALF = 50  # per cent


class RecomputedOneForwardOneBackward(Family):
    """1F1B whose backwards begin by making the first k of v groups of layers again."""

    name = "1f1b-recompute"
    title = "1F1B, R per cent recomputed"
    source = "T-Pipe (Chronos-aware pipeline parallelism) section 6.1, Appendix C"
    options = frozenset({"v", "R"})
    default_chunks = 2
    adds = frozenset({"recompute"})

    def places(self, pipeline: Pipeline) -> tuple[int, ...]:
        return even_blocks(pipeline.num_ranks, pipeline.num_chunks)

    def pipeline(self, params: FamilyParameters) -> Pipeline:
        share = HALF if params.R is None else params.R
        chunks = params.v or least_chunks(share)
        made = super().pipeline(replace(params, v=chunks))
        return self.recomputing(made, chunks=chunks_of_share(share, chunks))

    def prepared(self, pipeline: Pipeline) -> Pipeline:
        """Half of the groups recomputed, rounded down, but one at least."""
        return self.recomputing(pipeline, chunks=max(1, pipeline.num_chunks // 2))

    def recomputing(self, pipeline: Pipeline, *, chunks: int) -> Pipeline:
        """The pipeline, in even blocks, with the first ``chunks`` of each rank recomputed.

        Parameters
        ----------
        chunks
            How many of each rank, from 0 to all of them.
        """
        v = pipeline.num_chunks
        return recomputed_just_in_time(
            pipeline, {g for g in range(pipeline.num_stages) if g % v < chunks}
        )

    def program(self, pipeline: Pipeline) -> Program:
        return block_program(pipeline)

    def full_params(
        self, params: FamilyParameters, pipeline: Pipeline
    ) -> dict[str, int | tuple[int, ...]]:
        choice = pipeline.choices.recompute
        chunks = 0 if choice is None else len(choice.stages) // pipeline.num_ranks
        share = share_of_chunks(chunks, pipeline.num_chunks)
        return {**super().full_params(params, pipeline), "R": share}


def least_chunks(share: int) -> int:
    """The fewest chunks of which some are ``share`` per cent.

    Parameters
    ----------
    share
        Per cent, from 0 to 100.

    Examples
    --------
    >>> [least_chunks(share) for share in (0, 50, 67, 75, 1)]
    [1, 2, 3, 4, 67]
    """
    return next(
        chunks
        for chunks in count(1)
        if share in {share_of_chunks(k, chunks) for k in range(chunks + 1)}
    )


def share_of_chunks(recomputed: int, chunks: int) -> int:
    """Per cent of ``chunks`` that ``recomputed`` are, rounded, halves up.

    Parameters
    ----------
    recomputed
        How many are.
    chunks
        Of how many, 1 or more.
    """
    return (200 * recomputed + chunks) // (2 * chunks)


def chunks_of_share(share: int, chunks: int) -> int:
    """k: how many of ``chunks`` are ``share`` per cent.

    Parameters
    ----------
    share
        Per cent, from 0 to 100.
    chunks
        Of how many, 1 or more.

    Raises
    ------
    ValueError
        Where no number of them is that share.

    Examples
    --------
    >>> chunks_of_share(67, 3)
    2
    """
    nearest = (2 * share * chunks + 100) // 200
    if share_of_chunks(nearest, chunks) != share:
        shares = [share_of_chunks(k, chunks) for k in range(chunks + 1)]
        near = sorted(shares, key=lambda one: abs(one - share))[:2]
        raise ValueError(
            f"R={share} per cent is no whole number of {chunks} chunks; "
            f"use R={' or R='.join(map(str, sorted(near)))}"
        )
    return nearest
