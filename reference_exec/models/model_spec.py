"""Model specifications: which reference model a replay trains, and on what.

Three reference models are known, all pre-norm residual stacks over activations of shape
(batch, sequence, hidden):

- ``mlp``: x + W2 tanh(W1 norm(x) + b1) + b2, with 4 x hidden inner units;
- ``transformer``: causal attention and a GELU MLP, each behind a norm and a residual;
- ``llama``: causal attention with rotary positions, whose query heads share ``kv_heads`` heads of
  keys and values, and a SwiGLU of ceil(8/3 hidden) inner units, each behind an RMS norm.
- ``own``: a user's own modules, data and loss, from a factory (``own``), not as below.

A stage is ``layers`` of them. The first stage takes the input activations, the last is followed by
a squared error, scaled so that the losses of all microbatches add up to the loss of the batch.
Loads no torch: sizes can be asked for without it.

Factories of a user's model that are held as functions: each gets a name, as ``ModelSpec`` wants.

One that a process can import or load by its file is named so. Any other (a lambda, a function of a
notebook or within another one) is kept here under a name of its own, which only this process knows:
it serves ``virtual``, and a process of ``gloo`` says that it cannot be found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

KINDS = ("mlp", "transformer", "llama", "own")
ELEMENT_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
INNER_FACTOR = 4
EMBEDDING, HEAD = "embedding.weight", "head.linear.weight"  # the parameters that may be one
LARGEST = (1 << 31) - 1  # of any size; what does not fit into memory is found when it is built
MOST_BYTES = 4 << 30  # on the cpu; a model that a replay checks a schedule with is far smaller
MOST_LAYERS = 4096  # of a stage: they are built one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A reference model and the size of one microbatch.

    ``layers`` is the number of layers of every stage, or one number per stage; ``batch`` the
    samples of one microbatch; ``sequence`` their length in tokens; ``heads`` divides ``hidden``
    and, for ``llama``, ``kv_heads`` divides ``heads``, each of an even width.
    Of kind ``own``, ``factory`` names what builds the model (see ``own``), and only ``dtype``
    counts, or, where it ``keeps_type``, the type of 16 bits in which the model came; ``sample`` is
    the microbatch whose sizes are meant (``footprint.of_size``). Where the factory is a
    configuration of transformers, so do ``layers`` (one per stage: the cut), ``batch``,
    ``sequence`` and ``seed``.
    With a ``vocabulary`` the first stage embeds words and the last scores them (``layers``),
    ``tied`` by one matrix; ``num_stages`` is then filled in by ``on``.
    Weights and data follow from ``seed`` alone. Raises ``ValueError`` naming the field.
    """

    kind: str = "mlp"
    hidden: int = 8
    layers: int | tuple[int, ...] = 1
    heads: int = 2
    kv_heads: int = 1
    sequence: int = 4
    batch: int = 2
    dtype: str = "float64"
    seed: int = 0
    factory: str = ""
    vocabulary: int = 0
    tied: bool = False
    keeps_type: bool = False
    sample: int = 0
    num_stages: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            own = "; a model of your own is FILE.py:FUNCTION" if self.kind.endswith(".py") else ""
            raise ValueError(
                f"model kind must be one of {', '.join(KINDS)}, got {self.kind!r}{own}"
            )
        if (self.kind == "own") != bool(self.factory):
            raise ValueError(
                f"model factory belongs to kind own, got {self.factory!r} and kind {self.kind}"
            )
        if self.dtype not in ELEMENT_BYTES:
            known = ", ".join(ELEMENT_BYTES)
            raise ValueError(f"model dtype must be one of {known}, got {self.dtype!r}")
        self._require_counts()
        if self.hidden < 4:
            raise ValueError(
                f"model hidden must be 4 or more, got {self.hidden}; a norm over fewer elements "
                "has next to no gradient"
            )
        if self.hidden % self.heads:
            raise ValueError(
                f"model hidden must be a multiple of heads ({self.heads}), got {self.hidden}"
            )
        self._require_words()
        if self.kind == "llama":
            self._require_grouped_heads()
        if not 0 <= self.seed < 1 << 31:
            raise ValueError(f"model seed must be 0 to 2**31 - 1, got {self.seed}")

    def _require_counts(self) -> None:
        layers = self.layers if isinstance(self.layers, tuple) else (self.layers,)
        for name, value in (
            ("hidden", self.hidden),
            ("heads", self.heads),
            ("kv_heads", self.kv_heads),
            ("sequence", self.sequence),
            ("batch", self.batch),
            *(("layers", count) for count in layers or (0,)),
        ):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"model {name} must be 1 or more, whole, got {value!r}")
            most = MOST_LAYERS if name == "layers" else LARGEST
            if value > most:
                raise ValueError(f"model {name} must be {most} or less, got {value}")

    def _require_words(self) -> None:
        given = self.vocabulary
        if not isinstance(given, int) or (given and (given < 2 or self.kind == "own")):
            raise ValueError(
                "model vocabulary must be 2 or more words, for a reference model, "
                f"got {given!r} and kind {self.kind}"
            )
        if given > LARGEST:
            raise ValueError(f"model vocabulary must be {LARGEST} words or less, got {given}")
        if self.tied and not self.vocabulary:
            raise ValueError("model tied needs a vocabulary: embedding and head are then one")

    def _require_grouped_heads(self) -> None:
        if self.heads % self.kv_heads:
            raise ValueError(
                f"model heads must be a multiple of kv_heads ({self.kv_heads}), got {self.heads}"
            )
        if self.hidden // self.heads % 2:
            raise ValueError(
                "model hidden / heads must be even, rotary positions turn pairs, "
                f"got {self.hidden} / {self.heads}"
            )

    @property
    def inner(self) -> int:
        """The inner units of a layer: 4 hidden, of a SwiGLU ceil(8/3 hidden)."""
        return -(-8 * self.hidden // 3) if self.kind == "llama" else INNER_FACTOR * self.hidden

    @property
    def kv_width(self) -> int:
        """The elements of one token's keys in one layer of ``llama``."""
        return self.kv_heads * (self.hidden // self.heads)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The activation that passes between two stages: (batch, sequence, hidden)."""
        return (self.batch, self.sequence, self.hidden)

    @property
    def element_bytes(self) -> int:
        return ELEMENT_BYTES[self.dtype]

    def slice_length(self, slice_index: int, num_slices: int) -> int:
        """The tokens of one slice: the sequence cut as evenly as it goes, longer slices first."""
        length, longer = divmod(self.sequence, num_slices)
        return length + (slice_index < longer)

    def slice_start(self, slice_index: int, num_slices: int) -> int:
        """The tokens of a sample before one slice."""
        return sum(self.slice_length(k, num_slices) for k in range(slice_index))

    def layers_of(self, stage: int) -> int:
        """The number of layers of one stage."""
        return self.layers if isinstance(self.layers, int) else self.layers[stage]

    def on(self, num_stages: int) -> ModelSpec:
        """The specification for a schedule's stages.

        Raises ``ValueError`` where they are not those of ``layers``, or a tie has one end.
        """
        if self.keeps_type:
            from bubbleproof.reference_exec.models.own import in_its_type  # loads torch

            return in_its_type(self).on(num_stages)
        self.require_stages(num_stages)
        if self.tied and num_stages < 2:
            raise ValueError("model tied needs 2 or more stages, got 1")
        return replace(self, num_stages=num_stages if self.vocabulary or self.kind == "own" else 0)

    def is_embedding(self, stage: int) -> bool:
        """Whether a stage begins with the embedding of words."""
        return bool(self.vocabulary) and stage == 0

    def is_head(self, stage: int) -> bool:
        """Whether a stage ends with the scores of words. Precondition: ``on`` has been called."""
        if self.vocabulary and not self.num_stages:
            raise ValueError("a vocabulary needs the number of stages: call on() first")
        return bool(self.vocabulary) and stage == self.num_stages - 1

    def require_slices(self, num_slices: int) -> None:
        """Raise ``ValueError`` where a slice would have no token, or the model takes no slices."""
        if self.kind == "own" and num_slices > 1:
            raise ValueError(f"a model of kind own takes whole samples, got {num_slices} slices")
        if num_slices > self.sequence:
            raise ValueError(
                f"model sequence must be {num_slices} or more, one token per slice, "
                f"got {self.sequence}"
            )

    def require_stages(self, num_stages: int) -> None:
        """Raise ``ValueError`` where ``layers`` is per stage and not for ``num_stages`` stages.

        (``footprint.require_stages`` also counts those of kind ``own``.)
        """
        if not isinstance(self.layers, int) and len(self.layers) != num_stages:
            raise ValueError(
                f"model layers must be one number or one per stage ({num_stages}), "
                f"got {len(self.layers)}"
            )


HELD = "held in this process"
_held: dict[str, Callable[[], object]] = {}


def name_of(factory: Callable[[], object]) -> str:
    """``MODULE:FUNCTION`` or ``FILE.py:FUNCTION`` where that finds the same, else a name here."""
    module, name = getattr(factory, "__module__", ""), getattr(factory, "__qualname__", "")
    home = sys.modules.get(module or "")
    if home is not None and name.isidentifier() and getattr(home, name, None) is factory:
        file = getattr(home, "__file__", None)
        if module != "__main__":
            return f"{module}:{name}"
        if file is not None and Path(file).suffix == ".py":
            return f"{file}:{name}"
    known = next((key for key, one in _held.items() if one is factory), None)
    key = known or f"{HELD} ({len(_held)}):{name.rpartition('.')[2] or 'factory'}"
    _held[key] = factory
    return key


def held_factory(path: str) -> Callable[[], object] | None:
    """The function of a name that was given here; None for any other.

    Raises ``ValueError`` where the name is one of another process.
    """
    if not path.startswith(HELD):
        return None
    if path not in _held:
        raise ValueError(
            f"model factory {path}: other processes cannot find it; put it into a module or a file"
        )
    return _held[path]
