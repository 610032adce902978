"""Rule 9 for a plan over deployments: do their bundles bound every candidate of every deployment?

Each deployment has a space and a bundle of its own, and ends a step by ``after`` ticks that follow
its pipeline. One that the bundles miss, or name twice, or
that is none of the deployments, is refused; the least bound with what follows bounds the iteration.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bubbleproof.verify.candidates.bundle import (
    BundleVerdict,
    CandidateBound,
    DeploymentSpace,
    check_bundle,
)


def check_deployments(
    deployed: Sequence[DeploymentSpace], bundles: Sequence[tuple[str, tuple[CandidateBound, ...]]]
) -> BundleVerdict:
    """Hold a bundle for each deployment, by name, against all that there are."""
    known, given = {one.name: one for one in deployed}, Counter(name for name, _ in bundles)
    refusals = [f"nothing bounds the deployment {name}" for name in known if not given[name]]
    refusals += [f"{name} is no deployment of the problem" for name in given if name not in known]
    refusals += [f"{name} stands {count} times" for name, count in given.items() if count > 1]
    found = {
        name: check_bundle(known[name].space, bundle) for name, bundle in bundles if name in known
    }
    refusals += [f"{name}: {why}" for name, one in found.items() for why in one.refusals]
    bounds = [
        entry.bound + known[name].follows(entry.candidate)
        for name, bundle in bundles
        if name in known
        for entry in bundle
    ]
    return BundleVerdict(
        refusals=tuple(refusals),
        bound=None if refusals else min(bounds, default=None),
        believed=tuple(sorted({word for one in found.values() for word in one.believed})),
        num_proved=sum(one.num_proved for one in found.values()),
        num_not_legal=sum(one.num_not_legal for one in found.values()),
        num_without_room=sum(one.num_without_room for one in found.values()),
    )
