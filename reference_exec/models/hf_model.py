"""A model of `transformers` to replay: built from its configuration, or as somebody has built it.

The class is the one that the configuration names, or the library's for its type. Weights are drawn
by the library's own rule, module by module, each from the seed and the module's name: so they do
not depend on the cut, and a model with fewer layers has the weights of the first ones.

Data are random words of the vocabulary, the target of each the word after it, and the loss is the
mean cross-entropy, with the routers' auxiliary loss where ``output_router_logits`` asks for it. An
encoder reads the same words as the decoder. Where a configuration has a tower that takes patches of
an image with their grid (``image_grid_thw``), one image stands in front of the words.
"""

from __future__ import annotations

import copy
import gc
import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeGuard

import torch
from torch import nn

from bubbleproof.reference_exec.models.draws import seed_generators
from bubbleproof.reference_exec.models.hf_config import library, read_config
from bubbleproof.reference_exec.models.hf_stages import block_names, in_stages
from bubbleproof.reference_exec.models.model_spec import ELEMENT_BYTES, MOST_BYTES, ModelSpec
from bubbleproof.reference_exec.models.own_model import OwnModel

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel


class _TooLargeError(ValueError):
    """The model does not fit."""


_SCORING = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
DEVIATION = 0.02  # of a parameter that the library's rule leaves out


def hf_model(spec: ModelSpec) -> OwnModel:
    """The model that a specification's ``hf:`` factory names, in its stages.

    Raises ``ValueError`` naming the file, and the stage or the key.
    """
    model = _template(replace(spec, dtype="float32"))  # they are cast when they are asked for
    return replace(model, stages=copy.deepcopy(model.stages))


@lru_cache(maxsize=1)
def _template(spec: ModelSpec) -> OwnModel:
    """The model in its stages, which are nobody's: each who asks has copies."""
    found = read_config(spec.factory, spec.sequence)
    with torch.random.fork_rng(devices=[]):
        whole = _built(spec, found.config)
        draw(whole, spec.seed)
        model = hf_of_model(spec, whole)
    gc.collect()  # the library leaves circles behind, and with them the uncut model's weights
    lost = () if found.deep is None else kinds_lost(spec, found.config, found.deep)
    return replace(model, notes=(*found.notes, *lost, *model.notes))


def hf_of_model(spec: ModelSpec, whole: PreTrainedModel, own: OwnModel | None = None) -> OwnModel:
    """A model of the library in its stages, with the data and the loss of ``own``.

    Without that with words, and the loss of the next one.
    """
    if own is None:
        own = OwnModel(stages=(), batch=partial(words, spec, whole.config), loss=next_word)
    given, _ = own.batch(0, step=0) if own.has_steps else own.batch(0)
    names = ["input_ids", *["decoder_input_ids"] * whole.config.is_encoder_decoder]
    inputs = given if isinstance(given, dict) else dict.fromkeys(names, given)
    stages, notes = in_stages(spec, whole, inputs)
    return replace(own, stages=stages, notes=(*own.notes, *notes))


@lru_cache(maxsize=8)
def held(whole: PreTrainedModel) -> Callable[[], PreTrainedModel]:
    """A factory of copies of a model that somebody has made; the model stays as it is."""

    def factory() -> PreTrainedModel:
        return copy.deepcopy(whole)

    return factory


def is_model(value: object) -> TypeGuard[PreTrainedModel]:
    """Whether it is a model of the library, which whoever made it has loaded."""
    loaded = sys.modules.get("transformers.modeling_utils")
    return loaded is not None and isinstance(value, loaded.PreTrainedModel)


def words(
    spec: ModelSpec, config: PreTrainedConfig, microbatch: int, step: int
) -> tuple[object, torch.Tensor]:
    """Words of one microbatch, (batch, sequence), and the word that follows each.

    An image takes the place of the first words.
    """
    generator = torch.Generator().manual_seed(((spec.seed << 16) + step << 16) + microbatch)
    vocabulary = config.get_text_config().vocab_size
    drawn = torch.randint(vocabulary, (spec.batch, spec.sequence + 1), generator=generator)
    given = drawn[:, :-1].clone()
    pictured = _pictured(config, given, generator)
    return pictured or given, drawn[:, 1:].clone()


def _pictured(config: Any, ids: torch.Tensor, generator: torch.Generator) -> dict[str, object]:
    """The inputs with an image in each sample, whose grid becomes one word; none without tower."""
    tower: Any = getattr(config, "vision_config", None)
    if getattr(tower, "spatial_merge_size", None) is None:
        return {}
    special = (config.image_token_id, config.video_token_id, config.vision_start_token_id)
    plain = next(word for word in range(len(special) + 1) if word not in special)
    for word in special:
        ids[ids == word] = plain
    ids[:, 0], ids[:, 1] = config.vision_start_token_id, config.image_token_id
    side = tower.spatial_merge_size
    width = tower.in_channels * tower.temporal_patch_size * tower.patch_size**2
    return {
        "input_ids": ids,
        "pixel_values": torch.randn(len(ids) * side**2, width, generator=generator),
        "image_grid_thw": torch.tensor([[1, side, side]] * len(ids)),
        "mm_token_type_ids": (ids == config.image_token_id).long(),
    }


def next_word(given: object, target: torch.Tensor) -> torch.Tensor:
    """The cross-entropy of the word after each, and an auxiliary loss where there is one."""
    logits, *others = given if isinstance(given, tuple) else (given,)
    total = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
    for other in others:
        total = total + other.to(total.dtype)
    return total


def _built(spec: ModelSpec, config: PreTrainedConfig) -> PreTrainedModel:
    try:
        kind = class_of(config)
        with torch.device("meta"):
            _require_room(spec, sum(each.numel() for each in kind(config).parameters()))
        made: PreTrainedModel = kind(config)
    except _TooLargeError:
        raise
    except Exception as error:  # whatever the library's modules raise
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise ValueError(f"model {spec.factory}: transformers cannot build it: {why}") from None
    return made


def _require_room(spec: ModelSpec, numbers: int) -> None:
    needed = 2 * ELEMENT_BYTES["float64"] * numbers
    if needed > MOST_BYTES:
        raise _TooLargeError(
            f"model {spec.factory} has {numbers} parameters, {needed} bytes with their gradients, "
            f"and a model on the cpu takes at most {MOST_BYTES}: make it smaller "
            "(FILE,scale=16,num_hidden_layers=4)"
        )


def class_of(config: PreTrainedConfig) -> type[PreTrainedModel]:
    """The class that a configuration names, or the library's first that scores words.

    Raises ``ValueError`` where there is none.
    """
    package = library()
    for name in config.architectures or ():
        found = getattr(package, name, None)
        if found is not None and name.endswith(_SCORING):
            return found  # type: ignore[no-any-return]  # a class of the library's
    auto = package.models.auto.modeling_auto
    kinds = ("CAUSAL_LM", "MULTIMODAL_LM", "IMAGE_TEXT_TO_TEXT", "SEQ_TO_SEQ_CAUSAL_LM")
    for kind in reversed(kinds) if config.is_encoder_decoder else kinds:
        mapping: Mapping[type, type] = getattr(auto, f"MODEL_FOR_{kind}_MAPPING", {})
        if type(config) in mapping:
            return mapping[type(config)]
    raise ValueError(f"it has no model of type {config.model_type} that scores words")


def kinds_lost(
    spec: ModelSpec, config: PreTrainedConfig, deep: PreTrainedConfig
) -> tuple[str, ...]:
    """A sentence where a model with fewer layers has not all kinds of layer of the deeper one."""
    with torch.device("meta"):
        whole = class_of(deep)(deep)
        kept = len(block_names(class_of(config)(config)))
    kinds = [_kind(whole.get_submodule(name)) for name in block_names(whole)]
    every, here = len({*kinds}), len({*kinds[:kept]})
    if here == every:
        return ()
    needed = next(count for count in range(kept, len(kinds) + 1) if len({*kinds[:count]}) == every)
    return (
        f"{kept} layers have {here} of the {every} kinds of layer of {spec.factory.split(',')[0]}; "
        f"num_hidden_layers={needed} has all",
    )


def _kind(block: nn.Module) -> tuple[object, ...]:
    """What tells one layer from another: shapes, and plain attributes but its number."""
    shapes = tuple((name, each.shape) for name, each in block.named_parameters())
    marks = tuple(
        (name, key, value)
        for name, module in block.named_modules()
        for key, value in vars(module).items()
        if isinstance(value, bool | int | str | None) and "layer_id" not in key and key[0] != "_"
    )
    return type(block).__name__, shapes, marks


@torch.no_grad()
def draw(whole: PreTrainedModel, seed: int) -> None:
    """Draw all weights anew, each module's by the library's rule from the seed and its name."""
    kind = library().PreTrainedModel
    for parameter in whole.parameters():
        parameter.fill_(torch.nan)  # to see what the rule leaves out
        parameter._is_hf_initialized = False  # type: ignore[attr-defined]  # the library's mark
    homes = {name: each for name, each in whole.named_modules() if isinstance(each, kind)}
    for name, module in whole.named_modules():
        home = max((n for n in homes if not n or f"{name}.".startswith(f"{n}.")), key=len)
        _seed(seed, name)
        homes[home]._init_weights(module)
        for key, parameter in module.named_parameters(recurse=False):
            if parameter.isnan().any():
                _seed(seed, f"{name}.{key}")
                parameter.normal_(std=DEVIATION)


def _seed(seed: int, name: str) -> None:
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    seed_generators(int.from_bytes(digest[:7], "big"))
