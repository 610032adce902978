"""What PyTorch's pipeline runtime holds after each action: a model of its memory, in bytes.

Symbols: N d b the bytes of a message (``message``), A of a stage what autograd saves (``footprint``
less its input and its root), m microbatches. The runtime (torch 2.13: ``schedules.py``,
``stage.py``, ``_backward.py``) holds, beside parameters and their gradients,

    from its first step on, all the time
        a buffer for each message that a stage receives: m for inputs of every stage but the first,
        m for gradients of every stage but the last. An input is saved where it was received. Of two
        neighbouring stages on one rank the buffer gives place to the tensor that is handed on.
    from F on
        A, and the output. On the last stage: A, the output, the loss and its error.
    from B on
        B lets go of A and of the error. A sent output and the gradient of an input, which is sent
        back, stay until their WAIT_SEND, where a table has it (torch 2.15), else until all SENDs
        are waited for as the step ends. Losses stay, and outputs of the last stage where ``step``
        is to return them (its default); else B lets go of them.
    from I on
        nothing of A is let go: the nodes of the weights' products reach all of it. The gradient of
        each product's and each norm's output is kept for W as well (C, below), and the gradient of
        the input until the *next* step begins, in ``.grad`` of what it belongs to. The first
        stage's I does nothing.
    from W on
        W lets go of A and C.

With L layers on a stage, C is in units of N d b, for the mlp 5 L (the outputs of up, 4, and of the
norm, 1), for the transformer 10 L (of query, key and value 3, of the norms 2, of up 4, of the sum
behind attention 1), and the gradient of each layer's output, which is that of ``down``'s: L - 1 new
ones, for the uppermost is the message received; on the last stage L.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.reference_exec.models.footprint import footprint, input_bytes
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.theory.model.actions import Action, Kind

KEPT_GRADIENTS = {"mlp": 5, "transformer": 10}  # of each layer, in units of a message
_Key = tuple[int, int]  # stage, microbatch


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchStageBytes:
    """Bytes of one microbatch on one stage: see the module."""

    saved: int  # A
    message: int
    error: int  # 0 but on the last stage
    loss: int
    captured: int  # C


def stage_bytes(spec: ModelSpec, stage: int, num_stages: int) -> TorchStageBytes:
    """What a stage of a reference model keeps.

    Raises ``ValueError`` for a model whose products are not listed in the module.
    """
    if spec.kind not in KEPT_GRADIENTS or spec.vocabulary:
        raise ValueError(
            f"PyTorch's memory is predicted for {' and '.join(KEPT_GRADIENTS)} without a "
            f"vocabulary, got {spec.kind}, vocabulary {spec.vocabulary}; use --model mlp"
        )
    message = input_bytes(spec, stage)
    is_last = stage == num_stages - 1
    loss = spec.element_bytes * is_last
    layers = spec.layers_of(stage)
    held = footprint(spec, stage, num_stages).activation_bytes
    units = layers * KEPT_GRADIENTS[spec.kind] + layers - 1 + is_last
    return TorchStageBytes(
        saved=held - 2 * message - loss,  # its input is in a buffer; its root is counted apart
        message=message,
        error=message * is_last,
        loss=loss,
        captured=units * message,
    )


class _RankBytes:
    """The bytes on one rank as its actions go by."""

    def __init__(
        self, spec: ModelSpec, stage_ranks: Sequence[int], rank: int, num_microbatches: int
    ) -> None:
        self._last = len(stage_ranks) - 1
        self._own = {g for g, on in enumerate(stage_ranks) if on == rank}
        self._of = {g: stage_bytes(spec, g, len(stage_ranks)) for g in self._own}
        buffers = ((g > 0) + (g < self._last) for g in self._own)
        self.level = sum(buffers) * num_microbatches * input_bytes(spec)
        self._let_go = set[tuple[Kind, _Key]]()  # by whoever of two comes first
        self._split = set[_Key]()

    def run(self, action: Action, *, returns_outputs: bool) -> None:
        """Change the level as the action does."""
        for part in (action, action.partner):
            if part is not None:
                self._run(part, returns_outputs)

    def _run(self, action: Action, returns_outputs: bool) -> None:
        g, key = action.stage, (action.stage, action.microbatch)
        of = self._of[g]
        if action.kind in (Kind.F, Kind.OVERLAP_F_B):
            self.level += of.saved + of.error + of.loss
            self.level += of.message * (g + 1 not in self._own)
        elif action.kind is Kind.B or (action.kind is Kind.I and g > 0):
            self._backward(key, is_whole=action.kind is Kind.B, returns_outputs=returns_outputs)
        elif action.kind is Kind.I:
            self._split.add(key)
        elif action.kind is Kind.W:
            self.level -= of.saved + of.captured * (g > 0)
            if g == 0:
                self._need_no_more(Kind.SEND_F, key)
        elif action.kind is Kind.WAIT_SEND_F:
            self._need_no_more(Kind.SEND_F, key)
        elif action.kind is Kind.WAIT_SEND_B and key not in self._split:
            self.level -= of.message

    def _backward(self, key: _Key, *, is_whole: bool, returns_outputs: bool) -> None:
        g, of = key[0], self._of[key[0]]
        self.level -= of.error
        self.level += of.message * (g > 0 and g - 1 not in self._own)
        if g == self._last:
            self.level -= of.message * (not returns_outputs)
        else:
            self._need_no_more(Kind.SEND_F, key)
        if is_whole:
            self.level -= of.saved
        else:
            self._split.add(key)
            self.level += of.captured

    def _need_no_more(self, kind: Kind, key: _Key) -> None:
        """A sent output is let go by the later of its WAIT_SEND and its backward."""
        if (kind, key) in self._let_go:
            self.level -= self._of[key[0]].message
        self._let_go.add((kind, key))


def predicted_runtime_bytes(
    spec: ModelSpec,
    orders: Sequence[Sequence[Action]],
    stage_ranks: Sequence[int],
    num_microbatches: int,
    *,
    returns_outputs: bool = True,
) -> tuple[tuple[int, ...], ...]:
    """The bytes on each rank before its first action and after each of them.

    ``orders`` are the runtime's own, with its messages and its waits, whichever there are. Raises
    ``ValueError`` for a model whose products are not listed in the module.
    """
    found = []
    for rank, order in enumerate(orders):
        held = _RankBytes(spec, stage_ranks, rank, num_microbatches)
        levels = [held.level]
        for action in order:
            held.run(action, returns_outputs=returns_outputs)
            levels.append(held.level)
        found.append(tuple(levels))
    return tuple(found)
