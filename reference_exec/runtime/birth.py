"""Birth: the account of what a rank is made of, from before its stages are built.

Stages (parameters, buffers, constants, and what a user's stages make in their first forward) and
the data of the batch do not count among live bytes later, for as long as they stay as they are
(``ledger``); nor does what the host and shards keep. What else is made then counts from the first
action on. All of it together is compared with what pipeline and model say of it
(``plans.state_bytes``).

What was there before is none of it. Builds of a user's model may share tensors of their classes or
their file; a write into one is noticed (``births``), unless a dry run has written it too: that is
the model's own, and told in the report.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from bubbleproof.reference_exec.births import BIRTHS, constants_of
from bubbleproof.reference_exec.ledger import Keys, Ledger, bytes_of, storage_key
from bubbleproof.reference_exec.models.draws import kept_generators
from bubbleproof.reference_exec.models.examined import examined
from bubbleproof.reference_exec.models.footprint import of_size
from bubbleproof.reference_exec.models.own import build
from bubbleproof.reference_exec.models.reference import Stage
from bubbleproof.reference_exec.plans.replay_plan import ReplayPlan
from bubbleproof.reference_exec.runtime.device import Device

Refs = dict[int, StorageWeakRef]


class Birth:
    """What has been made of one rank so far. Where bytes do not count nothing is noted.

    Precondition: births are watched.
    """

    def __init__(self, plan: ReplayPlan, ledger: Ledger) -> None:
        """Begin: what is there now is nobody's."""
        self._plan, self._ledger = plan, ledger
        self._is_own = plan.spec.kind == "own"
        self._old: Refs = {}
        self._made: Refs = {}
        self.written_bytes = 0
        if self._is_own:
            for sample in range(plan.num_samples):  # what that keeps is not the rank's
                examined(of_size(plan.spec, sample))
            build(plan.spec)  # nor what the first build keeps for the next, such as a template
        if plan.counts_bytes:
            self._old = {**BIRTHS.old()} if self._is_own else {}
            BIRTHS.forget()

    def note_stages(self, stages: Mapping[int, Stage], device: Device) -> None:
        """Do not count what stages hold now, but what becomes of it.

        The parameters of stages that are on the host, or in shards, count while they are here.
        """
        if not self._plan.counts_bytes:
            return
        if self._is_own:
            self._make_constants(stages, device)
            self._ledger.exclude_refs(self._old.values())
        moving = stages if self._plan.is_sharded else self._plan.hosted & stages.keys()
        counted = {storage_key(p) for stage in moving for p in stages[stage].parameters()}
        tensors = constants_of(stages.values())
        built = [tensor.untyped_storage() for tensor in tensors]
        built += self._new(built) if self._is_own else []
        self._ledger.exclude_storages(each for each in built if each._cdata not in counted)
        self._ledger.follow(tensors)

    def note_data(self, tensors: Iterable[torch.Tensor]) -> None:
        """Do not count the data of the batch."""
        self._ledger.exclude_storages(tensor.untyped_storage() for tensor in tensors)

    def end(self, elsewhere: Keys) -> int:
        """Count what else was made; the bytes of all that was, but for storages ``elsewhere``."""
        if not self._plan.counts_bytes:
            return 0
        self._ledger.find(self._new())
        for key in elsewhere:
            self._made.pop(key, None)
        if self._is_own:
            gc.collect()  # a circle of references is no owner
        return sum(map(bytes_of, self._made.values()))

    def _new(self, held: Sequence[torch.UntypedStorage] = ()) -> list[torch.UntypedStorage]:
        """What was made since the last call and lives; ``held`` may not be young (``DryRun``).

        What all builds of the model have in common is old, though ``gc.freeze`` may hide it.
        """
        facts = examined(self._plan.spec) if held else ()
        shared = [tensor for each in facts for ref in each.shared if (tensor := ref()) is not None]
        old = self._old.keys() | {tensor.untyped_storage()._cdata for tensor in shared}
        found = [each for each in (*BIRTHS.taken(), *held) if each._cdata not in old]
        self._made |= {each._cdata: StorageWeakRef(each) for each in found}  # type: ignore[no-untyped-call]  # torch's stub
        return found

    def _make_constants(self, stages: Mapping[int, Stage], device: Device) -> None:
        """Run a user's stages once, so that what they make once is there."""
        all_facts = examined(self._plan.spec)
        for number, facts in enumerate(all_facts):
            written = [tensor for ref in facts.written if (tensor := ref()) is not None]
            BIRTHS.guard(tensor for ref in facts.shared if (tensor := ref()) is not None)
            if number in stages:
                self._ledger.forgiven_bytes += facts.kept_bytes
                self.written_bytes += sum(each.untyped_storage().nbytes() for each in written)
                given = device.put(facts.sample.clone())
                storage = given.untyped_storage()
                self._old[storage._cdata] = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch's stub
                with kept_generators():
                    stages[number](given, None)
        for facts in all_facts:
            BIRTHS.disregard(tensor for ref in facts.written if (tensor := ref()) is not None)
        BIRTHS.changed()
