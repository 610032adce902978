"""Bundles of proofs: accepted as made, and refused with each thing in them changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubbleproof.planners import PlanOptions, plan
from bubbleproof.solvers import Status
from bubbleproof.theory.pipelines.allowed import AllowedChoices, AllowedEvictions
from bubbleproof.theory.pipelines.pipeline import Pipeline
from bubbleproof.theory.pipelines.shapes.plan_space import PlanSpace
from bubbleproof.theory.pipelines.sharding import Sharding
from bubbleproof.verify.candidates.bundle import CandidateBound, DeploymentSpace, check_bundle
from bubbleproof.verify.candidates.deployment_bundles import check_deployments
from bubbleproof.verify.candidates.rank_claims import NoRoom
from proofs_tests.patience import PATIENCE

SPACE = PlanSpace(
    pipeline=Pipeline(
        num_ranks=2,
        num_microbatches=3,
        forward=2,
        backward=4,
        input_backward=2,
        weight_backward=2,
        activation=2,
        capacity=6,
    ),
    allowed=AllowedChoices(evict=AllowedEvictions(pairs=((0, 1),), duration=2)),
    chunks=(1, 2, 3),  # 2 ticks are not divisible by 3
    backward=("whole", "split"),
)
Bundle = tuple[CandidateBound, ...]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    found = plan(SPACE, PlanOptions(time_limit=PATIENCE, threads=1))
    assert found.status is Status.OPTIMAL
    return found.bundle


def refusals(bundle: Bundle, space: PlanSpace = SPACE) -> tuple[str, ...]:
    verdict = check_bundle(space, bundle)
    assert (verdict.bound is None) == bool(verdict.refusals)
    assert verdict.is_proved is (not verdict.refusals and not verdict.believed)
    return verdict.refusals


def with_certificates(bundle: Bundle) -> list[int]:
    found = [number for number, entry in enumerate(bundle) if entry.certificate is not None]
    assert len(found) >= 2
    return found


def changed(bundle: Bundle, number: int, **values: object) -> Bundle:
    entry = replace(bundle[number], **values)  # type: ignore[arg-type]  # fields by name
    return (*bundle[:number], entry, *bundle[number + 1 :])


def test_what_a_plan_makes_is_accepted(bundle: Bundle) -> None:
    verdict = check_bundle(SPACE, bundle)
    assert verdict.refusals == ()
    assert verdict.bound == min(entry.bound for entry in bundle)
    assert len(bundle) == 4
    assert verdict.num_not_legal == 2
    words = [entry for entry in bundle if entry.certificate is None]
    assert verdict.num_proved == len(bundle) - len(words)
    assert verdict.believed == tuple(sorted({entry.word for entry in words}))
    # The order in which the candidates stand says nothing.
    assert check_bundle(SPACE, bundle[::-1]) == verdict


@pytest.mark.parametrize("number", range(4))
def test_no_candidate_may_be_left_out_or_stand_twice(bundle: Bundle, number: int) -> None:
    entry = bundle[number]
    without = bundle[:number] + bundle[number + 1 :]
    assert refusals(without) == (f"the bundle has no bound of {entry.candidate}",)
    assert refusals((*bundle, entry)) == (f"{entry.candidate} stands 2 times",)


def test_nothing_at_all_is_no_proof(bundle: Bundle) -> None:
    assert len(refusals(())) == len(bundle)


def test_a_foreign_candidate_is_refused_whatever_its_proof(bundle: Bundle) -> None:
    illegal = replace(bundle[0].candidate, chunks=3)
    for foreign in (illegal, replace(illegal, chunks=4), replace(illegal, slices=2)):
        more = (*bundle, replace(bundle[0], candidate=foreign))
        assert refusals(more) == (f"{foreign} is no legal candidate of the problem",)
        swapped = changed(bundle, 0, candidate=foreign)
        assert len(refusals(swapped)) == 2  # and what it stands in for is missing


def test_a_bound_is_that_of_its_certificate(bundle: Bundle) -> None:
    for number in with_certificates(bundle):
        entry, certificate = bundle[number], bundle[number].certificate
        assert certificate is not None
        [alone] = refusals(changed(bundle, number, bound=entry.bound + 1))
        assert alone.endswith(f"the certificate is not about a makespan of {entry.bound + 1}")
        # Neither is it proved by a certificate that claims one tick more.
        more = replace(certificate, bound=entry.bound + 1)
        assert len(refusals(changed(bundle, number, bound=more.bound, certificate=more))) == 1
        idle = replace(certificate, objective="span_idle")
        [other] = refusals(changed(bundle, number, certificate=idle))
        assert "is not about a makespan" in other


def test_a_certificate_of_another_candidate_proves_only_what_it_proves_there(
    bundle: Bundle,
) -> None:
    numbers = with_certificates(bundle)
    least = min(numbers, key=lambda number: bundle[number].bound)
    tight = next(n for n in numbers if bundle[n].bound > bundle[least].bound)
    entry = bundle[tight]
    foreign = changed(bundle, least, bound=entry.bound, certificate=entry.certificate)
    [why] = refusals(foreign)
    assert why.startswith(str(bundle[least].candidate))


def test_a_bundle_of_another_problem_is_refused(bundle: Bundle) -> None:
    faster = replace(SPACE, pipeline=SPACE.pipeline.with_changes(forward=1))
    assert len(refusals(bundle, faster)) >= 1
    shorter = replace(SPACE, pipeline=SPACE.pipeline.with_changes(num_microbatches=2))
    assert len(refusals(bundle, shorter)) >= len(with_certificates(bundle))
    more = replace(SPACE, placements=("loop", "wave"))
    assert len(refusals(bundle, more)) == len(bundle)
    less = replace(SPACE, chunks=(1,))
    assert len(refusals(bundle, less)) == 2


def test_an_engine_is_believed_by_name(bundle: Bundle) -> None:
    worded = changed(bundle, 0, certificate=None, word="cpsat", bound=10**6)
    verdict = check_bundle(SPACE, worded)
    assert verdict.refusals == ()
    assert "cpsat" in verdict.believed
    assert not verdict.is_proved
    assert verdict.num_proved <= len(bundle) - 1
    # A second engine is counted too, and a word beside a certificate is not needed.
    both = check_bundle(SPACE, changed(worded, 1, certificate=None, word="sat"))
    assert {"cpsat", "sat"} <= {*both.believed}
    [why] = refusals(changed(bundle, 0, certificate=None, word=""))
    assert why.endswith("neither a certificate nor an uncertified bound")


def test_only_accepted_certificates_count_as_proved(bundle: Bundle) -> None:
    number = with_certificates(bundle)[0]
    proved = check_bundle(SPACE, bundle).num_proved
    worse = changed(bundle, number, bound=bundle[number].bound + 1)
    assert check_bundle(SPACE, worse).num_proved == proved - 1


def test_a_bound_of_0_needs_no_proof_and_one_of_1_does(bundle: Bundle) -> None:
    assert refusals(changed(bundle, 0, certificate=None, word="", bound=0)) == ()
    believed = check_bundle(SPACE, changed(bundle, 0, certificate=None, word="cpsat", bound=1))
    assert "cpsat" in believed.believed
    [why] = refusals(changed(bundle, 0, certificate=None, word="", bound=1))
    assert why.endswith("neither a certificate nor an uncertified bound")


TIGHT = replace(SPACE, pipeline=SPACE.pipeline.with_changes(capacity=1), allowed=None)
NO_ROOM = NoRoom(rank=0, bound=10**9)  # for 2 units of a microbatch in 1
DEPLOYED = (
    DeploymentSpace(name="a", space=SPACE, after=5),
    DeploymentSpace(name="b", space=SPACE, after=2),
    DeploymentSpace(name="tight", space=TIGHT, after=0),
)
Named = tuple[tuple[str, Bundle], ...]


def everywhere(bundle: Bundle) -> Named:
    """A bundle for each deployment."""
    tight = tuple(
        replace(entry, bound=NO_ROOM.bound, certificate=NO_ROOM, word="") for entry in bundle
    )
    return ("a", bundle), ("b", bundle), ("tight", tight)


def test_deployments_are_bounded_together(bundle: Bundle) -> None:
    verdict = check_deployments(DEPLOYED, everywhere(bundle))
    assert verdict.refusals == ()
    # What follows the pipeline of "b" is 2 ticks; what has no room bounds nothing.
    assert verdict.bound == min(entry.bound for entry in bundle) + 2
    one = check_bundle(SPACE, bundle)
    assert verdict.num_without_room == len(bundle)
    assert verdict.num_proved == 2 * one.num_proved + len(bundle)
    assert verdict.num_not_legal == 3 * one.num_not_legal
    assert verdict.believed == one.believed
    said = changed(bundle, 0, certificate=None, word="cpsat")
    by_word = check_deployments(DEPLOYED, (("a", said), *everywhere(bundle)[1:]))
    assert by_word.refusals == ()
    assert "cpsat" in by_word.believed


def test_deployments_are_each_bounded_once(bundle: Bundle) -> None:
    first, *rest = everywhere(bundle)

    def refused(bundles: Named) -> tuple[str, ...]:
        verdict = check_deployments(DEPLOYED, bundles)
        assert (verdict.bound is None) == bool(verdict.refusals)
        return verdict.refusals

    assert refused(tuple(rest)) == ("nothing bounds the deployment a",)
    assert refused((first, first, *rest)) == ("a stands 2 times",)
    foreign = ("c", bundle)
    assert refused((first, *rest, foreign)) == ("c is no deployment of the problem",)
    missed = ("a", bundle[1:])
    assert refused((missed, *rest)) == (f"a: the bundle has no bound of {bundle[0].candidate}",)
    [*roomless] = refused((("a", everywhere(bundle)[2][1]), *rest))
    assert len(roomless) == len(bundle)
    assert all(why.startswith("a: ") for why in roomless)


def test_what_follows_a_pipeline_with_collectives_of_its_own_is_the_rest() -> None:
    own = SPACE.pipeline.with_changes(sharding=Sharding(zero=1, gather=1, reduce=1))
    others = (("with", own), ("without", SPACE.pipeline))
    deployed = DeploymentSpace(name="a", space=replace(SPACE, others=others), after=9, rest=2)
    found = {one.beside: deployed.follows(one) for one in deployed.space.candidates()}
    assert found == {"": 9, "with": 2, "without": 9}
