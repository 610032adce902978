"""Torch's own FLOP counter, without what it loads to keep compilers out of its way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from torch.utils import flop_counter


def flops_by_torch(run: Callable[[], object]) -> int:
    """What torch's counter counts of a function that runs."""
    mode = flop_counter._FlopCounterMode
    with pytest.MonkeyPatch.context() as patch:
        # torch wraps it so that dynamo, which takes seconds to load, leaves it alone
        plain = getattr(mode.__torch_dispatch__, "__wrapped__", mode.__torch_dispatch__)
        patch.setattr(mode, "__torch_dispatch__", plain)
        with flop_counter.FlopCounterMode(display=False) as count:
            run()
    found: int = count.get_total_flops()
    return found
