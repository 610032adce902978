"""The judge: whether a given schedule, program or certificate is right. Small; read it first.

``check`` decides rules 1 to 5 and 8 for a schedule, ``check_program`` for an order without times,
``check_communication`` rule 6 for a program with SEND and RECV, ``dataflow`` rule 7.
"""

from bubbleproof.verify.check import check, check_program
from bubbleproof.verify.communication.matching import check_communication, compute_part
from bubbleproof.verify.communication.semantics import USUAL, Semantics
from bubbleproof.verify.dataflow.dataflow_rule import check_dataflow, check_dataflow_of_program
from bubbleproof.verify.finding import Finding, Rule
from bubbleproof.verify.verdict import RuleDecision, Verdict, Violation, join
from bubbleproof.verify.whole import check_whole

__all__ = [
    "USUAL",
    "Finding",
    "Rule",
    "RuleDecision",
    "Semantics",
    "Verdict",
    "Violation",
    "check",
    "check_communication",
    "check_dataflow",
    "check_dataflow_of_program",
    "check_program",
    "check_whole",
    "compute_part",
    "join",
]

if __name__ == "verify":  # imported from the top of a checkout
    raise ImportError("import bubbleproof.verify: verify/ is one with it")
