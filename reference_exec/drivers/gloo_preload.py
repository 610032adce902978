"""What the server of the gloo driver has ready for each process that is forked from it.

To load this module prepares the counting of floating-point operations (``flop_count``), which takes
each process as long as a small replay's forwards do. Nothing else loads it.
"""

from __future__ import annotations

from bubbleproof.reference_exec.flop_count import prepare

prepare()
