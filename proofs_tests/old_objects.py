"""What is old is kept from the garbage collector: a replay has it look through all that is not.

The ledger of bytes asks for a collection at each release. In a test run that holds a gigabyte of
what earlier tests made, each takes a tenth of a second, and a replay some hundred of them.
"""

from __future__ import annotations

import gc


def hide_what_is_old() -> None:
    """What is alive now stays until the end of the run, without being looked through."""
    gc.collect()
    gc.freeze()
