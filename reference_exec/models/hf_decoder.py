"""Decoders of `transformers` as models to replay: GPT-2, Llama, Qwen2, Qwen3, Mixtral and the like.

A decoder is cut into stages by its layers. A stage is the library's own body with the layers of
that stage alone: the first has the embedding (and GPT-2's positions) before them, the last the norm
and the head behind them. Its own forward computes masks and rotary positions anew in each stage, so
nothing but activations of shape (batch, sequence, hidden) passes between two. Whatever its forward
does besides, the stages one after the other must give the very logits of the uncut model, which is
checked when it is built: a decoder that cannot be cut so is refused and not replayed wrongly.

Layers are cut as evenly as they go; where that leaves some over, the stages in the middle have one
more, since the first also embeds and the last also scores. ``layers`` says another cut.

Weights are drawn by the library's own rule from the seed. Data are random words of the vocabulary,
the target of each the word after it; the loss is the mean cross-entropy.
"""

from __future__ import annotations

import copy
import gc
from dataclasses import replace
from functools import lru_cache, partial

import torch
from torch import nn

from bubbleproof.reference_exec.models.draws import seed_generators
from bubbleproof.reference_exec.models.hf_config import library, read_config
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.own_model import OwnModel

_LAYERS, _NORMS = ("layers", "h"), ("norm", "ln_f", "final_layernorm")


def hf_model(spec: ModelSpec) -> OwnModel:
    """The model that a specification's ``hf:`` factory names, in its stages.

    Raises ``ValueError`` naming the file, and the stage or the key.
    """
    model = _template(replace(spec, dtype="float32"))  # they are cast when they are asked for
    return replace(model, stages=[copy.deepcopy(stage) for stage in model.stages])


@lru_cache(maxsize=1)
def _template(spec: ModelSpec) -> OwnModel:
    """The model in its stages, which are nobody's: each who asks has copies."""
    model = _in_stages(spec)
    gc.collect()  # the library leaves circles behind, and with them the uncut model's weights
    return model


def _in_stages(spec: ModelSpec) -> OwnModel:
    found = read_config(spec.factory)
    config = found.config
    with torch.random.fork_rng(devices=[]):
        seed_generators(spec.seed)
        whole = _built(spec, config)
    body = _body(whole)
    layers = getattr(body, _name(spec, body, _LAYERS))
    counts = cut(spec, len(layers))
    starts = [sum(counts[:stage]) for stage in range(len(counts))]
    stages = [
        _Part(whole, range(start, start + count), spec)
        for start, count in zip(starts, counts, strict=True)
    ]
    _require_same(spec, whole, stages, words(spec, config.vocab_size, 0, 0)[0])
    return OwnModel(
        stages=stages,
        batch=partial(words, spec, config.vocab_size),
        loss=_next_word,
        notes=found.notes,
    )


def cut(spec: ModelSpec, num_layers: int) -> tuple[int, ...]:
    """How many layers each stage has. Raises ``ValueError`` where they do not make the model."""
    stages = spec.num_stages
    if isinstance(spec.layers, tuple):
        if sum(spec.layers) != num_layers:
            raise ValueError(
                f"model {spec.factory} has {num_layers} layers, --layers "
                f"{','.join(map(str, spec.layers))} are {sum(spec.layers)}"
            )
        return spec.layers
    if stages > num_layers:
        raise ValueError(
            f"model {spec.factory} has {num_layers} layers for {stages} stages; give it more "
            f"({spec.factory},num_hidden_layers={stages}) or take fewer stages"
        )
    each, more = divmod(num_layers, stages)
    first = (stages - more) // 2
    return tuple(each + (first <= stage < first + more) for stage in range(stages))


def words(
    spec: ModelSpec, vocabulary: int, microbatch: int, step: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Words of one microbatch, (batch, sequence), and the word that follows each."""
    generator = torch.Generator().manual_seed(((spec.seed << 16) + step << 16) + microbatch)
    drawn = torch.randint(vocabulary, (spec.batch, spec.sequence + 1), generator=generator)
    return drawn[:, :-1].clone(), drawn[:, 1:].clone()


def _next_word(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())


def _built(spec: ModelSpec, config: object) -> nn.Module:
    try:
        made: nn.Module = library().AutoModelForCausalLM.from_config(config)
    except Exception as error:  # whatever the library's modules raise
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"model {spec.factory}: transformers cannot build it: {why}") from None
    return made


def _name(spec: ModelSpec, body: nn.Module, names: tuple[str, ...]) -> str:
    for name in names:
        if hasattr(body, name):
            return name
    raise ValueError(
        f"model {spec.factory}: {type(body).__name__} has none of {', '.join(names)}; give its "
        "stages by a factory of your own (FILE.py:FUNCTION)"
    )


class _Nothing(nn.Module):
    """Stands where positions are embedded, in a stage that is not the first."""

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        return torch.zeros((), device=positions.device)


class _Part(nn.Module):
    """The layers of a range, with what stands before the first and behind the last."""

    def __init__(self, whole: nn.Module, layers: range, spec: ModelSpec) -> None:
        super().__init__()
        body = _body(whole)
        name, norm = _name(spec, body, _LAYERS), _name(spec, body, _NORMS)
        every = getattr(body, name)
        self.body = _bare_copy(body)
        setattr(self.body, name, nn.ModuleList(every[number] for number in layers))
        vars(self.body)["config"] = _config_of(body.config, layers)
        self.is_first, is_last = layers.start == 0, layers.stop == len(every)
        if not self.is_first:
            self.body.set_input_embeddings(None)  # type: ignore[operator]  # a PreTrainedModel's
            if hasattr(body, "wpe"):
                self.body.wpe = _Nothing()
        if not is_last:
            setattr(self.body, norm, nn.Identity())
        self.head = whole.get_output_embeddings() if is_last else None  # type: ignore[operator]  # likewise

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = {"input_ids": x} if self.is_first else {"inputs_embeds": x}
        y: torch.Tensor = self.body(**given, use_cache=False).last_hidden_state
        return y if self.head is None else self.head(y)


def _body(whole: nn.Module) -> nn.Module:
    """The model without its head."""
    body = whole.base_model
    if not isinstance(body, nn.Module):
        raise TypeError(f"{type(whole).__name__}: expected a PreTrainedModel's base_model")
    return body


def _bare_copy(body: nn.Module) -> nn.Module:
    """The same modules under a body of its own; what holds no parameters is copied."""
    made = copy.copy(body)
    made._modules = {
        name: module if module is None or [*module.parameters()] else copy.deepcopy(module)
        for name, module in body._modules.items()
    }
    return made


def _config_of(config: object, layers: range) -> object:
    """The configuration of a body that has these layers alone."""
    made = copy.deepcopy(config)
    kinds = getattr(made, "layer_types", None)
    if kinds is not None:
        made.layer_types = [kinds[number] for number in layers]  # type: ignore[attr-defined]  # as above
    made.num_hidden_layers = len(layers)  # type: ignore[attr-defined]  # every configuration's
    return made


@torch.no_grad()
def _require_same(
    spec: ModelSpec, whole: nn.Module, stages: list[_Part], given: torch.Tensor
) -> None:
    expected = whole.eval()(input_ids=given, use_cache=False).logits  # without dropout
    found = given
    for stage in stages:
        found = stage.eval()(found)
        stage.train()
    if not torch.equal(found, expected):
        raise ValueError(
            f"model {spec.factory}: {type(whole).__name__} cut by layers gives other logits than "
            "uncut; give its stages by a factory of your own (FILE.py:FUNCTION)"
        )
