"""Answers to an audit of the verdicts: what was found wrong with them, item by item.

Somebody else read the four papers against the verdicts that this project had told of them, and
found many too hard on the papers. An answer says, for one point of that audit, what was found, in
our words, which claims it is about, and what was changed or why not. What became of the claims is
not written down here: ``bubbleproof claims --audit --answers`` decides them and writes the table.

``answer`` says what an answer is, ``listed`` lists the papers' modules, each with its own.
"""

from __future__ import annotations

from bubbleproof.papers.answers.answer import AuditAnswer

__all__ = ["AuditAnswer"]
