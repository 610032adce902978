"""Every answer to the audit, of all papers."""

from __future__ import annotations

from bubbleproof.papers.answers import on_bpipe, on_field, on_mepipe, on_pipemesh, on_tpipe
from bubbleproof.papers.answers.answer import AuditAnswer

_PAPERS = (on_bpipe, on_mepipe, on_pipemesh, on_tpipe, on_field)


def answers() -> tuple[AuditAnswer, ...]:
    """Every answer, by the audit's item; within an item in the order of the papers."""
    found = [answer for module in _PAPERS for answer in module.ANSWERS]
    return tuple(sorted(found, key=lambda answer: answer.item))
