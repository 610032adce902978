"""What an answer to one point of the audit is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditAnswer:
    """One point of the audit's ``item``: what it ``found``, which ``claims`` that is about.

    ``change`` says what was changed, or why not; ``is_followed`` is whether the audit was followed
    in this point. A point may be about no claim at all, where it is about words.
    """

    item: int
    found: str
    claims: tuple[str, ...]
    change: str
    is_followed: bool = True


def answer(
    item: int, found: str, claims: str, change: str, *, is_followed: bool = True
) -> AuditAnswer:
    """The answer; ``claims`` are ids with spaces between them."""
    return AuditAnswer(
        item=item,
        found=found,
        claims=tuple(claims.split()),
        change=change,
        is_followed=is_followed,
    )
