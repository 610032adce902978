"""``bubbleproof claims ID --set p=8 m=32``: one claim at one case, inside its domain or not.

Of each reading both values are told, and whether they stand in its relation. A case outside the
domain is evaluated all the same, which the answer says. Exit status 0 where a reading holds, else
1. With ``--json``: ``id``, ``params`` and ``readings``, each with
``name``, ``admissible``, ``claimed``, ``relation``, ``measured``, ``holds`` and ``in_domain``.
"""

from __future__ import annotations

from collections.abc import Sequence

from bubbleproof.commands.output import BROKEN, HOLDS, print_json, print_table, print_text, ratio
from bubbleproof.papers.claims import PaperClaim, Reading
from bubbleproof.papers.claims.domain import Params
from bubbleproof.papers.registry import claims
from bubbleproof.suggestions import did_you_mean


def claim_named(name: str) -> PaperClaim:
    """The claim of an id. Raises ``ValueError`` with the nearest one."""
    known = claims(None)
    if name not in known:
        paper = name.partition(".")[0]
        near = [each for each in known if each.startswith(f"{paper}.")] or list(known)
        raise ValueError(f"no claim {name!r}{did_you_mean(name, near)}; claims lists them")
    return known[name]


def run_case(claim: PaperClaim, settings: Sequence[str], json: bool) -> int:
    """Evaluate a claim at the case that the settings give, and print both sides."""
    at = _case(claim, settings)
    readings = [_evaluated(reading, at) for reading in claim.readings]
    if json:
        print_json({"id": claim.id, "params": dict(at), "readings": readings})
    else:
        where = " ".join(f"{name}={value}" for name, value in at.items())
        print_text(f"{claim.id} ({claim.source}): {claim.statement}")
        header = ("reading", "claimed", "relation", "measured", "holds", "in the domain")
        print_table(f"at {where}", header, [_row(each) for each in readings])
    return HOLDS if any(each["holds"] for each in readings) else BROKEN


def _case(claim: PaperClaim, settings: Sequence[str]) -> Params:
    """The values of the parameters. Raises ``ValueError`` for others than the claim's."""
    names = claim.readings[0].domain.names
    found: dict[str, int] = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or not value.lstrip("-").isdecimal():
            raise ValueError(f"--set takes NAME=NUMBER, got {setting!r}")
        if name not in names:
            hint = did_you_mean(name, names)
            known = " ".join(names)
            raise ValueError(f"claim {claim.id} has no parameter {name!r}{hint}; it has {known}")
        found[name] = int(value)
    if lacking := [name for name in names if name not in found]:
        given = _example(claim)
        raise ValueError(
            f"claim {claim.id} needs {' '.join(names)}, got no {' '.join(lacking)}; "
            f"such as --set {given}"
        )
    return {name: found[name] for name in names}


def _example(claim: PaperClaim) -> str:
    """The last of the small cases, as one writes it."""
    point = claim.readings[0].domain.points[-1]
    return " ".join(f"{name}={value}" for name, value in point.items())


def _evaluated(reading: Reading, at: Params) -> dict[str, object]:
    if set(reading.domain.names) - set(at):
        missing = " ".join(set(reading.domain.names) - set(at))
        raise ValueError(f"reading {reading.name!r} has parameters of its own: {missing}")
    try:
        predicted, measured = reading.values(at)
    except ZeroDivisionError:
        raise ValueError("the claim's formula divides by 0 at this case") from None
    points = reading.domain_for(is_wide=True).points
    return {
        "name": reading.name,
        "admissible": True,
        "claimed": ratio(predicted),
        "relation": reading.relation.value,
        "measured": ratio(measured),
        "holds": reading.accepts(predicted, measured),
        "in_domain": dict(at) in points,
    }


def _row(told: dict[str, object]) -> tuple[str, ...]:
    words = {True: "yes", False: "no"}
    return (
        str(told["name"]),
        _plain(told["claimed"]),
        str(told["relation"]),
        _plain(told["measured"]),
        words[told["holds"] is True],
        words[told["in_domain"] is True],
    )


def _plain(value: object) -> str:
    return str(value).removesuffix("/1")
