"""A configuration of `transformers`, read from its JSON file and changed by hand: ``hf:FILE.json``.

    hf:llama.json                                as the file says
    hf:llama.json,num_hidden_layers=8            with another number of layers
    hf:llama.json,scale=64,num_hidden_layers=8   narrower (``hf_scale``)
    hf:llava.json,part=text                      a part alone, of those that the library scores
    hf:llama.json,attention=eager                by one of the library's implementations

FILE is a published ``config.json``, or its folder. The library reads it, all its keys, old and new;
a key that it does not know changes nothing and is not refused. A key that is *changed* must be one
of the configuration's, of its text part, or of the file. The type is said elsewhere
(``ModelSpec.dtype``, ``--dtype``). Nothing is loaded from a network, and no
code but the library's is run: a configuration has all sizes, and weights are drawn.

What is not as the file says is in ``notes``, a sentence each.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubbleproof.reference_exec.models.hf_scale import narrowed, with_layers
from bubbleproof.theory.near_names import did_you_mean

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

PREFIX = "hf:"
INSTALL = 'pip install "bubbleproof[models]"'
_OWN = ("scale", "part", "attention")
_OF_THE_HUB = ("auto_map", "_name_or_path", "quantization_config", "compression_config")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HfConfig:
    """A configuration, and what is not as its file says, one sentence each.

    ``deep`` is the same with the file's number of layers, where another is asked for.
    """

    config: PreTrainedConfig
    deep: PreTrainedConfig | None = None
    notes: tuple[str, ...]


def is_hf(factory: str) -> bool:
    """Whether a model's factory is a configuration of transformers."""
    return factory.startswith(PREFIX)


def file_of(factory: str) -> Path:
    """The configuration's file."""
    path = Path(factory.removeprefix(PREFIX).split(",")[0])
    return path / "config.json" if path.is_dir() else path


def read_config(factory: str, sequence: int = 4) -> HfConfig:
    """The configuration that ``hf:FILE.json,KEY=VALUE,...`` names, for samples of so many words.

    Raises ``ValueError`` naming the file, the key with the nearest known one, and the repair.
    """
    path, changes = file_of(factory), factory.split(",")[1:]
    given = _content(path)
    config = _config(path, given)
    homes = _homes(given, config)
    known = {*_OWN, *(key for keys in homes.values() for key in keys)}
    changed = dict(_change(path, text, known) for text in changes)
    own = {name: changed.pop(name) for name in _OWN if name in changed}
    scale = own.get("scale", 1)
    if not isinstance(scale, int) or scale < 1:
        raise ValueError(f"model {path}: scale must be a whole number, 1 or more, got {scale!r}")
    made = copy.deepcopy(given) if scale == 1 else narrowed(given, config, scale, sequence)
    layers = {key: changed.pop(key) for key in _names_of_layers(config) & changed.keys()}
    for key, value in changed.items():
        home = next(name for name, keys in homes.items() if key in keys)
        part = made.setdefault(home, {}) if home else made
        part[key] = value
    deep = _config(path, made) if layers else None
    text = next((name for name in homes if name and given.get(name)), "")
    for count in layers.values():
        with_layers(made[text] if text else made, config.get_text_config(), count)
    found = _part(path, _config(path, made), own)
    deep = None if deep is None else _part(path, deep, own)
    notes = (*_told(made, given), *_made_replayable(found))
    return HfConfig(config=found, deep=deep, notes=notes)


def _part(path: Path, config: PreTrainedConfig, own: dict[str, Any]) -> PreTrainedConfig:
    """The part of a configuration, and the implementation of attention, that are asked for."""
    if "part" in own:
        parts = {name.removesuffix("_config"): name for name in type(config).sub_configs}
        config = getattr(config, parts[_one_of(path, "part", own["part"], parts)])
    if "attention" in own:
        known = library().modeling_utils.ALL_ATTENTION_FUNCTIONS.valid_keys()
        config._attn_implementation = _one_of(
            path, "attention", own["attention"], {"eager", *known}
        )
    return config


def _one_of(path: Path, option: str, value: object, known: Collection[str]) -> str:
    if value not in known:
        these = ", ".join(sorted(known)) or "none of this model"
        hint = did_you_mean(str(value), known)
        raise ValueError(f"model {path}: {option} must be one of {these}, got {value!r}{hint}")
    return str(value)


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
    return {key: value for key, value in content.items() if key not in _OF_THE_HUB}


def _config(path: Path, given: dict[str, Any]) -> PreTrainedConfig:
    transformers = library()
    kind = given["model_type"]
    if kind not in transformers.CONFIG_MAPPING:
        raise ValueError(
            f"model {path}: model_type {kind!r} is not one of transformers "
            f"{transformers.__version__}{did_you_mean(kind, [*transformers.CONFIG_MAPPING])}"
        )
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of old keys
            config: PreTrainedConfig = transformers.AutoConfig.for_model(**copy.deepcopy(given))
    except Exception as error:  # whatever its own checks raise
        why = (str(error).splitlines() or [type(error).__name__])[-1].strip()
        raise ValueError(f"model {path}: transformers refuses it: {why}") from None
    return config


def _homes(given: dict[str, Any], config: PreTrainedConfig) -> dict[str, set[str]]:
    """The keys that can be changed, by the part of the file: itself ("") and that of the text."""
    text = next((key for key in type(config).sub_configs if key == "text_config"), "")
    homes = {"": {*given, *_fields(config)}}
    if text:
        homes = {text: {*(given.get(text) or {}), *_fields(config.get_text_config())}, **homes}
    return homes


def _fields(config: PreTrainedConfig) -> set[str]:
    return {*(each.name for each in fields(config)), *type(config).attribute_map}


def _names_of_layers(config: PreTrainedConfig) -> set[str]:
    own = type(config.get_text_config()).attribute_map.get("num_hidden_layers", "")
    return {"num_hidden_layers", own, "num_layers"}


def _change(path: Path, text: str, known: set[str]) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if key in ("dtype", "torch_dtype"):
        raise ValueError(
            f"model {path}: the type is no change of the file, got {text!r}; say --dtype {value} "
            "(ModelSpec(dtype=...))"
        )
    if not equals or key not in known:
        raise ValueError(
            f"model {path}: expected KEY=VALUE of the configuration, got {text!r}"
            f"{did_you_mean(key, known)}"
        )
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _told(made: dict[str, Any], given: dict[str, Any], part: str = "") -> list[str]:
    """A sentence for each key of a file that was changed."""
    notes = []
    for key, value in made.items():
        before = given.get(key)
        if isinstance(value, dict) and key.endswith("_config"):
            notes += _told(value, before or {}, f"{part}{key}.")
        elif value != before:
            is_now, was = ("none" if each is None else each for each in (value, before))
            notes.append(f"{part}{key} is {is_now}, the file has {was}")
    return notes


def _made_replayable(config: PreTrainedConfig) -> list[str]:
    """What no replay can take is changed in place; a sentence each."""
    notes, text = [], config.get_text_config()
    if any(
        getattr(text, name, None)
        for name in ("num_local_experts", "num_experts", "n_routed_experts")
    ):
        config._experts_implementation = "eager"
        notes.append("experts run one after the other (eager): the grouped product has no float64")
    for part in (config, text):
        part.use_cache = False
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            setattr(part, name, None)  # words are drawn: none stands for an end, none is masked
    return notes
