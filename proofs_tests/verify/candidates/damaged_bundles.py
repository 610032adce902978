"""Bundles of proofs damaged: entries and deployments left out, doubled, renamed, moved, raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from bubbleproof.theory.pipelines.shapes.plan_space import Candidate, PlanSpace
from bubbleproof.verify.candidates.bundle import CandidateBound

Bundle = tuple[CandidateBound, ...]
Bundles = tuple[tuple[str, Bundle], ...]
MORE = (1, 2, 9, 1_000_000)  # ticks


def damaged_bundle(rng: Random, space: PlanSpace, bundle: Bundle) -> Bundle:
    """The bundle with something of its list or of an entry changed."""
    if not bundle:
        return bundle
    entries, at = [*bundle], rng.randrange(len(bundle))
    entry, other = entries[at], rng.choice(bundle)
    match rng.randrange(8):
        case 0:
            entries.pop(at)
        case 1:
            entries.insert(at, other)
        case 2:  # in place of one that is hard to bound
            entries[at] = other
        case 3:
            entries[at] = replace(entry, candidate=_renamed(rng, space, entry.candidate))
        case 4:
            entries[at] = replace(entry, certificate=other.certificate, bound=other.bound)
        case 5:
            entries[at] = replace(entry, bound=entry.bound + rng.choice(MORE))
        case 6:
            entries[at] = replace(entry, certificate=None, bound=entry.bound * rng.randint(0, 2))
        case _:  # all of them say more
            more = rng.choice(MORE)
            entries = [_more(each, more) for each in entries]
    return tuple(entries)


def _more(entry: CandidateBound, more: int) -> CandidateBound:
    """The entry and its certificate with a higher bound."""
    proof = entry.certificate
    if proof is None:
        return replace(entry, bound=entry.bound + more)
    return replace(
        entry, bound=entry.bound + more, certificate=replace(proof, bound=proof.bound + more)
    )


def _renamed(rng: Random, space: PlanSpace, candidate: Candidate) -> Candidate:
    """The candidate with another value of a field, one of the space's or none of it."""
    match rng.randrange(5):
        case 0:
            return replace(candidate, chunks=rng.choice((*space.chunks, 3)))
        case 1:
            return replace(candidate, placement=rng.choice((*space.placements, (0,))))
        case 2:
            return replace(candidate, backward=rng.choice((*space.backward, "whole", "split")))
        case 3:
            return replace(candidate, slices=rng.choice((*space.slices, 3)))
        case _:
            return replace(candidate, beside=rng.choice(("", "other", "none")))


def damaged_bundles(rng: Random, spaces: Mapping[str, PlanSpace], bundles: Bundles) -> Bundles:
    """The bundles of deployments with one of them left out, doubled, renamed, moved or damaged."""
    found, at = [*bundles], rng.randrange(len(bundles))
    name, bundle = found[at]
    other, moved = rng.choice(bundles)
    match rng.randrange(6):
        case 0:
            found.pop(at)
        case 1:
            found.insert(at, (other, moved))
        case 2:
            found[at] = (rng.choice((other, "none")), bundle)
        case 3:
            found[at] = (name, moved)
        case 4:
            found[at] = (other, moved)
        case _:
            found[at] = (name, damaged_bundle(rng, spaces[name], bundle))
    return tuple(found)
