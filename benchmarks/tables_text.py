"""What the page of ``pytorch_tables`` says whatever was measured."""

from __future__ import annotations

ASSUMPTIONS = """\
- Durations are unknown and taken as one tick (two for a full backward). For an order without times
  rules 1 to 3 do not depend on them; rule 4 holds for any left-shifted order, and rule 5 too where
  no capacity is stated. Collectives (UNSHARD, RESHARD, REDUCE_GRAD) are left out.
- `GPipe` and `1F1B` train by loops of their own (`_step_microbatches`), not from their table. What
  is judged is `pipeline_order`, which PyTorch's visualizer draws and which
  `_PipelineScheduleRuntime` would be given; its SENDs and RECVs are those of the runtime's
  lowering. A wrong table of these two says nothing about training with them. What is wrong with
  that of `1F1B` in PyTorch 2.13.0: on the last rank it numbers the forwards 1 to m instead of 0 to
  m-1, so that its first backward stands before its forward.
- *crossed*: the k-th SEND and the k-th RECV from one rank to another are different messages.
  PyTorch gives all its messages one tag, and messages of one direction between two ranks arrive in
  order, so the receiver takes the one for the other: silently where shapes agree. A crossed program
  is wrong under every semantics and is not counted again as a deadlock.
- *buffered* is the kindest transport (gloo with `isend`/`irecv`). *rendezvous* has blocking sends;
  PyTorch's runtime does not send like that, a simple one may. *pair-stream* is un-batched
  `isend`/`irecv` on NCCL, which is what `_batch_p2p` of PyTorch 2.13 issues for a SEND or a RECV:
  one stream per pair of ranks. *rank-stream* is the same with an eagerly initialised communicator.
  NCCL may let a small message end before it is received, so a deadlock of the last two can stay
  hidden until messages grow.
- The deadlocks were not run on GPUs. The pattern (a SEND_B waits on one rank, whose RECV_B stands
  behind a SEND_F on the other) is the hang reported on 2026-01-21 in pytorch/pytorch#172668;
  `defer_pp_recv` came with pytorch/pytorch#178815 and is off by default.
"""
