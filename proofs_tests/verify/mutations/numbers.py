"""Claims, true and false: rule 8."""

from __future__ import annotations

from random import Random

from proofs_tests.verify.mutations.operators import (
    operator,
)
from proofs_tests.verify.plain import plain_measures
from proofs_tests.verify.tables import Specimen


@operator(nature="harmless")
def true_claims(random: Random, specimen: Specimen) -> Specimen | None:
    measured = plain_measures(specimen.problem, specimen.schedule())
    names = random.sample(sorted(measured), random.randint(1, len(measured)))
    return specimen.with_claims(
        {
            n: str(measured[n]) if n.startswith("idle_") and n != "idle_ticks" else measured[n]
            for n in names
        }
    )


@operator("CLAIMS")
def number_off_by_one(random: Random, specimen: Specimen) -> Specimen | None:
    measured = plain_measures(specimen.problem, specimen.schedule())
    name = random.choice(("makespan", "work", "span_idle", "idle_ratio", "idle_over_work"))
    value = measured[name]
    assert not isinstance(value, tuple)
    return specimen.with_claims({name: value + random.choice((-1, 1))})


@operator("CLAIMS")
def list_off_by_one(random: Random, specimen: Specimen) -> Specimen | None:
    measured = plain_measures(specimen.problem, specimen.schedule())
    name = random.choice(("idle_ticks", "rank_spans", "peak_memory", "peak_activations"))
    value = measured[name]
    assert isinstance(value, tuple)
    at = random.randrange(len(value))
    return specimen.with_claims({name: (*value[:at], value[at] + 1, *value[at + 1 :])})


@operator("CLAIMS")
def unknown_claim(random: Random, specimen: Specimen) -> Specimen | None:
    return specimen.with_claims({random.choice(("bubble", "Makespan", "")): 0})


@operator("CLAIMS")
def unreadable_claim(random: Random, specimen: Specimen) -> Specimen | None:
    return specimen.with_claims({"idle_ratio": random.choice(("half", "1/0", ""))})
