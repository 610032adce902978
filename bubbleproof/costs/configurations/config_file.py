"""A configuration's file, ``hf:config.json`` or its folder, as the shape of a model.

Where `transformers` is installed it reads the file: all its keys, old names and new, and what it
makes of them is read here. It takes two seconds, and knows what a file leaves out: of the published
ones with any one key less, 934, 124 have other sizes without it and 252 are refused. Else the keys
of the file are read, and one that is not known is refused by name: it may decide a size. Nothing is
loaded from a network, and no code of the file is run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bubbleproof.costs.configurations.configuration import KEYS, Configuration
from bubbleproof.costs.configurations.decoder import decoder
from bubbleproof.costs.configurations.decoder_types import DECODERS
from bubbleproof.costs.configurations.towers import COMPOSITES
from bubbleproof.costs.further_layers import layered, named_layers
from bubbleproof.costs.transformer import Transformer
from bubbleproof.theory.near_names import did_you_mean

PREFIX = "hf:"
NO_SIZE = KEYS["no_size"].split()
MOST_BYTES = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredModel:
    """A model, its longest sequence, and what was understood of its file.

    ``understood`` has each key of the file that was read with its value, ``ignored`` those that
    decide no size, ``notes`` what the file means for costs and is not counted, a sentence each;
    ``reader`` is "transformers" with its version, or "own".
    """

    model: Transformer
    sequence: int
    understood: tuple[tuple[str, str], ...]
    ignored: tuple[str, ...]
    notes: tuple[str, ...]
    reader: str


def is_configuration(text: str) -> bool:
    """Whether a model is named as a configuration.

    Parameters
    ----------
    text
        What was given as a model.
    """
    return text.startswith(PREFIX)


def read_configuration(text: str, *, with_library: bool | None = None) -> ConfiguredModel:
    """The model of ``hf:FILE.json`` or of its folder.

    Parameters
    ----------
    text
        ``hf:`` and the path of the file or of its folder.
    with_library
        Whether transformers reads the file; None: where it is installed and knows the type.

    Raises
    ------
    ValueError
        In one line, with the file, the key and the repair.
    """
    path = Path(text.removeprefix(PREFIX))
    path = path / "config.json" if path.is_dir() else path
    content = _content(path)
    kind = _kind(path, content)
    library = _library() if with_library in (None, True) else None
    if library is not None and kind in library.CONFIG_MAPPING:
        try:
            values = _read_by(library, path, kind, content)
        except ValueError as refused:
            found = _made(path, kind, content, content)
            return replace(found, notes=(*found.notes, f"read without transformers: {refused}"))
        reader = f"transformers {library.__version__}"
        return replace(_made(path, kind, content, values), reader=reader)
    found = _made(path, kind, content, content)
    _require_known(path, kind, found.ignored, dict(found.understood))
    return found


def _made(
    path: Path, kind: str, content: Mapping[str, Any], values: Mapping[str, Any]
) -> ConfiguredModel:
    """The model of these values, as they are in the file or as the library has them."""
    keys = Configuration(path=str(path), values=values)
    keys.used["model_type"] = kind
    text = keys.table("text_config") or keys
    text.word("model_type")
    inner, tower = COMPOSITES.get(kind, (kind, None))
    if kind not in COMPOSITES and text is not keys:
        inner = _text_kind(path, text)
    model, sequence = decoder(text, inner, _name(path))
    if text is not keys and keys.values.get("tie_word_embeddings") is not None:
        model = model.with_changes(tied=keys.flag("tie_word_embeddings", model.tied))
    seen = next((keys.table(key) for key in TOWERS if keys.has(key)), None)
    notes = _notes(content)
    if seen is not None and tower is not None:
        front = tower(seen, keys, model.hidden)
        model = layered(model, [*front, *named_layers(model)])
        notes += _told_of_tower(content, seen, front[0][0].tokens)
    elif seen is not None:
        notes.append(f"{seen.within.rstrip('.')}: its tower is not counted, the decoder is")
    parts = [keys, *(each for each in (text, seen) if each is not None and each is not keys)]
    used = {
        f"{part.within}{key}": value
        for part in parts
        for key, value in part.used.items()
        if key in part.values
    }
    told = [f"{part.within}{key}" for part in parts for key in _told_keys(content, part.within)]
    return ConfiguredModel(
        model=model,
        sequence=sequence,
        understood=tuple((key, _short(value)) for key, value in used.items()),
        ignored=tuple(key for key in told if key not in used),
        notes=tuple(notes),
        reader="own",
    )


TOWERS = ("vision_config", "audio_config")


def _told_keys(content: Mapping[str, Any], within: str) -> list[str]:
    """The keys of a table of the file."""
    table = content if not within else content.get(within.rstrip("."), {})
    return list(table) if isinstance(table, Mapping) else []


def _text_kind(path: Path, text: Configuration) -> str:
    kind = text.word("model_type")
    found = next((each for each in (kind, kind.removesuffix("_text")) if each in DECODERS), None)
    if found is None:
        raise _unknown(path, kind, "text_config.model_type")
    return found


def _told_of_tower(content: Mapping[str, Any], seen: Configuration, tokens: int) -> list[str]:
    key = seen.within.rstrip(".")
    found = [
        f"{key}: a sample has {tokens:,} tokens in the tower; [model] tower_tokens tells others"
    ]
    if key not in content:
        found.append(f"{key}: the file has none, the library's own sizes are taken")
    return found


def _content(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"{path}: expected a configuration of at most 4 MiB; is it weights?")
        content = json.loads(path.read_text("utf-8"))
    except OSError as error:
        why = error.strerror or error
        raise ValueError(f"{path}: cannot be read: {why}; hf: names a config.json") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        where = (
            f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else ""
        )
        raise ValueError(f"{path}: is no whole JSON{where and f', {where}'}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: expected a table of keys, got {type(content).__name__}")
    return content


def _kind(path: Path, content: Mapping[str, Any]) -> str:
    kind = content.get("model_type")
    if not isinstance(kind, str):
        other = next((what for key, what in KEYS["foreign"].items() if key in content), "")
        told = f", this is {other}" if other else ""
        raise ValueError(
            f'{path}: model_type: expected a name such as "llama", got nothing{told}; hf: takes a '
            "config.json of transformers"
        )
    if kind not in DECODERS and kind not in COMPOSITES and "text_config" not in content:
        raise _unknown(path, kind, "model_type")
    return kind


def _unknown(path: Path, kind: str, key: str) -> ValueError:
    near = did_you_mean(kind, (*DECODERS, *COMPOSITES))
    return ValueError(
        f"{path}: {key}: {kind[:60]!r} is not counted here{near}; write its sizes as [model]"
    )


def _library() -> Any:
    try:
        import transformers
    except ImportError:
        return None
    transformers.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # its own
    return transformers


NOT_READ = ("auto_map", "_name_or_path", "quantization_config", "model_type", "architectures")


def _read_by(library: Any, path: Path, kind: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """What the library makes of the file. Raises ``ValueError`` where it refuses."""
    rest = {key: value for key, value in content.items() if key not in NOT_READ}
    try:
        config = library.CONFIG_MAPPING[kind](**rest)
        found = {**vars(config), **config.to_dict()}
        text = config.get_text_config()
        if text is config:
            found.setdefault("num_hidden_layers", text.num_hidden_layers)
    except Exception as error:  # whatever its own checks raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        why = " ".join(lines[-2:]) or type(error).__name__
        raise ValueError(f"{path}: transformers refuses it: {why}") from None
    return dict(found)


def _require_known(
    path: Path, kind: str, unknown: Iterable[str], used: Mapping[str, object]
) -> None:
    for key in unknown:
        last = key.rpartition(".")[2]
        if last not in NO_SIZE and not last.startswith("_") and not key.startswith(TOWERS):
            near = did_you_mean(last, [*used, *NO_SIZE])
            raise ValueError(
                f"{path}: {key}: this key is not known of {kind}{near}; leave it out if it decides "
                "no size, or install transformers, which reads all"
            )


def _notes(content: Mapping[str, Any]) -> list[str]:
    found = []
    for key in ("num_nextn_predict_layers", "num_mtp_modules"):
        if content.get(key):
            found.append(
                f"{key} {content[key]}: modules that predict further tokens are not counted, as "
                f"transformers builds none; [model] mtp = {content[key]} counts them"
            )
    if content.get("quantization_config"):
        found.append("quantization_config: weights are counted as trained, not as stored")
    if content.get("auto_map"):
        found.append("auto_map: code that comes with the file is not run")
    return found


def _name(path: Path) -> str:
    return path.parent.name if path.stem == "config" else path.stem


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
