"""A configuration of `transformers`, read from its JSON file and changed by hand: ``hf:FILE.json``.

    hf:llama.json                                as the file says
    hf:llama.json,num_hidden_layers=8            with another number of layers
    hf:llama.json,scale=64,num_hidden_layers=8   narrower, see below

``scale=N`` makes a model narrower and keeps what shapes it. Heads, heads of keys and values and
experts stay; a head's width is divided by N, down to 4 at least, and made even, for rotary
positions; hidden is heads times that, or where a configuration says its head's width itself,
hidden / N in the same way; inner widths shrink as hidden does, rounded up to whole multiples of 8;
of the vocabulary 256 words are left at most. Depth stays: it is ``num_hidden_layers``.

What is changed besides is in ``notes``, a sentence each: the head has a matrix of its own, since
two stages cannot share one; experts run one after the other, since the grouped product has no
float64.

Nothing is loaded from a network: a configuration has all sizes, and weights are drawn.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubbleproof.theory.near_names import did_you_mean

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

PREFIX = "hf:"
INSTALL = 'pip install "bubbleproof[models]"'
SMALLEST_HEAD = 4
MOST_WORDS = 256
_INNER = ("intermediate_size", "moe_intermediate_size", "n_inner", "ffn_dim")
_PLAIN = ("transformers_version", "architectures", "torch_dtype", "dtype", "_name_or_path")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HfConfig:
    """A configuration, and what is not as its file says, one sentence each."""

    config: PreTrainedConfig
    notes: tuple[str, ...]


def is_hf(factory: str) -> bool:
    """Whether a model's factory is a configuration of transformers."""
    return factory.startswith(PREFIX)


def file_of(factory: str) -> Path:
    """The configuration's file."""
    return Path(factory.removeprefix(PREFIX).split(",")[0])


def read_config(factory: str) -> HfConfig:
    """The configuration that ``hf:FILE.json,KEY=VALUE,...`` names.

    Raises ``ValueError`` naming the file, the key with the nearest known one, and the repair.
    """
    path, *changes = factory.removeprefix(PREFIX).split(",")
    given = _content(Path(path))
    config = _config(path, given)
    known = {*config.to_dict(), *_PLAIN, *type(config).attribute_map, "scale"}
    _require_known(path, given, known)
    changed = dict(_change(path, text, known) for text in changes)
    scale = changed.pop("scale", 1)
    if not isinstance(scale, int) or scale < 1:
        raise ValueError(f"model {path}: scale must be a whole number, 1 or more, got {scale!r}")
    narrower = {**_narrower({**config.to_dict(), **changed}, scale), **changed}
    config = _config(path, {**given, **narrower})
    notes = [f"{key} is {value}, the file has {given.get(key)}" for key, value in narrower.items()]
    return HfConfig(config=config, notes=(*notes, *_made_replayable(config)))


def library() -> Any:
    """The package. Raises ``ValueError`` with the repair where it is not installed."""
    try:
        import transformers
    except ModuleNotFoundError as missing:
        if missing.name != "transformers":
            raise
        raise ValueError(
            f"model {PREFIX}... needs transformers, which is not installed; run: {INSTALL}"
        ) from None
    transformers.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # its own
    return transformers


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        why = error.strerror or error
        raise ValueError(f"model {path}: cannot be read: {why}; hf: names a JSON file") from None
    except ValueError as error:
        raise ValueError(f"model {path}: is no JSON: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("model_type"), str):
        raise ValueError(
            f'model {path}: expected a configuration of transformers with its "model_type", '
            'such as "llama"'
        )
    return content


def _config(path: str, given: dict[str, Any]) -> PreTrainedConfig:
    transformers = library()
    kind, rest = given["model_type"], {k: v for k, v in given.items() if k != "model_type"}
    if kind not in transformers.CONFIG_MAPPING:
        raise ValueError(
            f"model {path}: model_type {kind!r} is not one of transformers "
            f"{transformers.__version__}{did_you_mean(kind, [*transformers.CONFIG_MAPPING])}"
        )
    try:
        config: PreTrainedConfig = transformers.CONFIG_MAPPING[kind](**rest)
    except Exception as error:  # whatever its own checks raise
        why = (str(error).splitlines() or [type(error).__name__])[-1].strip()
        raise ValueError(f"model {path}: transformers refuses it: {why}") from None
    return config


def _require_known(path: str, given: dict[str, Any], known: set[str]) -> None:
    """The keys of the file are the configuration's: a misspelt one would be kept and not used."""
    known_to_class = known - set(given) | set(_fields(given["model_type"]))
    for key in given:
        if key not in known_to_class and key not in _PLAIN:
            raise ValueError(
                f"model {path}: unknown key {key!r}{did_you_mean(key, known_to_class)}"
            )


def _fields(kind: str) -> set[str]:
    """What a configuration of a kind has when nothing is given, and other names of the same."""
    plain = library().CONFIG_MAPPING[kind]
    return {*plain().to_dict(), *plain.attribute_map}


def _change(path: str, text: str, known: set[str]) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or key not in known:
        raise ValueError(
            f"model {path}: expected KEY=VALUE of the configuration, got {text!r}"
            f"{did_you_mean(key, known)}"
        )
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _narrower(config: dict[str, Any], scale: int) -> dict[str, Any]:
    """The sizes of a model ``scale`` times narrower, by the names that the configuration has."""
    if scale == 1:
        return {}
    hidden_name = "n_embd" if "n_embd" in config else "hidden_size"
    heads = config["n_head"] if "n_head" in config else config["num_attention_heads"]
    hidden = config[hidden_name]
    found = {hidden_name: heads * _even(hidden // heads // scale)}
    if config.get("head_dim"):
        found["head_dim"] = _even(config["head_dim"] // scale)
    for name in _INNER:
        if config.get(name):
            inner = -(-config[name] * found[hidden_name] // hidden)
            found[name] = -(-inner // 8) * 8
    if config["vocab_size"] > MOST_WORDS:
        found["vocab_size"] = MOST_WORDS
    return found


def _even(width: int) -> int:
    return max(SMALLEST_HEAD, width - width % 2)


def _made_replayable(config: PreTrainedConfig) -> list[str]:
    """What no replay can take is changed in place; a sentence each."""
    notes = []
    if config.tie_word_embeddings:
        config.tie_word_embeddings = False
        notes.append(
            "the head has a matrix of its own, the configuration ties it to the embedding "
            "(tie_word_embeddings): two stages of a model of your own share no parameter"
        )
    if getattr(config, "num_local_experts", None) or getattr(config, "num_experts", None):
        config._experts_implementation = "eager"
        notes.append("experts run one after the other (eager): the grouped product has no float64")
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        setattr(config, name, None)  # words are drawn: none stands for an end, none is masked
    return notes
