"""Random numbers of a user's model: each forward draws at a place of torch's generator of its own.

The place follows from the model's seed, the stage, the optimizer step, the number of the microbatch
in the whole batch (which tells replicas apart) and the slice; so a microbatch has one dropout mask
on a stage, in F and in R, in whatever order ranks run, on whatever backend, and in the oracles.
Torch's generators are where they were afterwards.

Two places have the same numbers where 32 bits of a hash agree, since torch's generator of the cpu
looks at no more of its seed. A loss draws at the place of the stage after the last.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from bubbleproof.reference_exec.models.model_spec import ModelSpec

_DRAWS = 4  # the stream of these, where ``reference`` has 0 to 3 for weights and data


def place_of(seed: int, stage: int, step: int, sample: int, slice_: int = 0) -> int:
    """The seed of one forward, of 32 bits.

    >>> place_of(0, 1, 0, 2) == place_of(0, 1, 0, 2), place_of(0, 1, 0, 2) == place_of(0, 2, 0, 1)
    (True, False)
    """
    hashed = np.random.SeedSequence([seed, _DRAWS, stage, step, sample, slice_])
    return int(hashed.generate_state(1)[0])


@contextmanager
def drawing(spec: ModelSpec, stage: int, step: int, sample: int, slice_: int = 0) -> Iterator[None]:
    """A context in which torch's generators stand at one forward's place, of a user's model."""
    if spec.kind != "own":  # no reference model draws
        yield
        return
    with kept_generators():
        seed_generators(place_of(spec.seed, stage, step, sample, slice_))
        yield


def seed_generators(seed: int) -> None:
    """Have all of torch's generators begin at a seed, as ``torch.manual_seed`` has them.

    For each kind of device that nobody has used yet that writes down the stack of its caller, which
    costs more than a small forward does; a torch that was built for the cpu has one generator.
    """
    if torch.accelerator.current_accelerator() is None:
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


@contextmanager
def kept_generators() -> Iterator[None]:
    """A context after which torch's generators, of this and of every device, are as before."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()  # type: ignore[no-untyped-call]  # torch's stub
    with torch.random.fork_rng(devices=list(devices)):
        yield
