"""Every answer to the audit, of all papers."""

from __future__ import annotations

from bubbleproof.papers.answers.answer import AuditAnswer
from bubbleproof.papers.bpipe import bpipe_answers
from bubbleproof.papers.field import field_answers
from bubbleproof.papers.mepipe import mepipe_answers
from bubbleproof.papers.pipemesh import pipemesh_answers
from bubbleproof.papers.tpipe import tpipe_answers

_PAPERS = (bpipe_answers, mepipe_answers, pipemesh_answers, tpipe_answers, field_answers)


def answers() -> tuple[AuditAnswer, ...]:
    """Every answer, by the audit's item; within an item in the order of the papers."""
    found = [answer for module in _PAPERS for answer in module.ANSWERS]
    return tuple(sorted(found, key=lambda answer: answer.item))
