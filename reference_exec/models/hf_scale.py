"""A published configuration made narrower: its file's keys are changed, and it is read again.

With N the scale, of each part of the file (text, towers):

- heads of keys and values are 2 at most, with 4 queries to each at most;
- a head's width is divided by N, in multiples of 8, down to 16 (or what it is, if it is less);
- hidden is heads times that where it was so, otherwise hidden / N in multiples of 8 heads;
- inner widths, ranks and states are divided by N, in multiples of 8;
- experts are the fewest that leave the router a choice and its groups their size;
- state-space and linear-attention mixers have 2 heads for each of their groups;
- windows and chunks are half of the sample at most, or they would do nothing;
- of the vocabulary 256 words are left at most, and special words are inside it;
- lists for rotary positions are cut to the head's width; towers have two layers.

What the library derives from these keys it derives anew. Depth stays: it is ``num_hidden_layers``.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

MOST_WORDS = 256
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
          "decoder_attention_heads")  # fmt: skip
_GROUPS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "embed_dim")
_WIDTHS = re.compile(
    r"^(.*intermediate_size(_mlp)?|n_inner|d_ff|.*ffn_dim|.*lora_rank|.*head_dim|d_kv"
    r"|mamba_dt_rank|.*state_size)$"
)
_EXPERTS = ("n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
_CHOSEN = ("num_experts_per_tok", "moe_topk", "top_k_experts", "num_experts_per_token")
_WINDOWS = ("sliding_window", "attention_chunk_size")
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers",
           "encoder_layers", "decoder_layers")  # fmt: skip
_STATE_HEADS = (  # times their width they are the inner width, expand times hidden
    ("num_heads", "head_dim", "expand"),
    ("mamba_n_heads", "mamba_d_head", "mamba_expand"),
    ("n_mamba_heads", "mamba_headdim", "mamba_expand"),
)
_ROTARY = ("rope_scaling", "rope_parameters")


def narrowed(
    given: dict[str, Any], config: PreTrainedConfig, scale: int, sequence: int
) -> dict[str, Any]:
    """The file of a model ``scale`` times narrower, for samples of so many words."""
    made = copy.deepcopy(given)
    parts = [key for key in type(config).sub_configs if getattr(config, key, None) is not None]
    if not parts:
        return made | _Part(given, config, scale, sequence).changes()
    for key in parts:
        part = getattr(config, key)
        own = given.get(key) or {k: v for k, v in given.items() if k in _fields(part)}
        made[key] = own | _Part(own, part, scale, sequence).changes()
    text = made.get("text_config", {})
    for key in parts:
        if "vision" in key or "audio" in key:
            made[key] |= _of_tower(getattr(config, key), text.get("hidden_size"))
    words = text.get("vocab_size", 0)
    made |= {key: words - 1 - k for k, key in enumerate(_special(config)) if words}
    return made


def with_layers(part: dict[str, Any], config: PreTrainedConfig, layers: int) -> None:
    """Give a part of a file so many layers; lists with an entry for each are cut."""
    before, known = config.num_hidden_layers, {*_fields(config), *part}
    pattern = next((key for key in part if key.endswith("override_pattern")), None)
    if pattern is not None:
        part[pattern] = part[pattern][:layers]
        part.pop("num_hidden_layers", None)
    names = [key for key in _LAYERS if key in known and pattern is None]
    for key in names:
        if key != "num_hidden_layers" or len(names) == 1 or key in part:
            part[key] = layers
    for key, value in part.items():
        if isinstance(value, list) and len(value) == before > layers:
            part[key] = value[:layers]


def _fields(config: PreTrainedConfig) -> set[str]:
    return {*getattr(type(config), "__dataclass_fields__", {})}


def _special(config: PreTrainedConfig) -> list[str]:
    """The keys of words that stand for an image or the like, beside those of the text."""
    return [
        key
        for key in sorted(_fields(config))
        if key.endswith("token_id")
        and getattr(config, key, None) is not None
        and not key.startswith(("pad", "bos", "eos"))
    ]


def _of_tower(tower: PreTrainedConfig, hidden: int | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        key: 2
        for key in ("depth", "num_hidden_layers")
        if isinstance(getattr(tower, key, None), int)
    }
    if hasattr(tower, "out_hidden_size"):
        found["out_hidden_size"] = hidden
    if hasattr(tower, "fullatt_block_indexes"):
        found["fullatt_block_indexes"] = [1]
    return found


def _to(size: int, scale: int, least: int = 8) -> int:
    return min(size, max(least, -(-(size // scale) // 8) * 8))


class _Part:
    """One part of a file, read as ``config``."""

    def __init__(
        self, given: dict[str, Any], config: PreTrainedConfig, scale: int, sequence: int
    ) -> None:
        self._given, self._scale, self._sequence = given, scale, sequence
        self._own = _fields(config) | given.keys()
        self._values = config.to_dict()
        for new, old in type(config).attribute_map.items():
            if old in self._values:
                self._values.setdefault(new, self._values[old])
        self._new: dict[str, Any] = {}
        self._code_sections = "mrope_section" in getattr(
            config, "ignore_keys_at_rope_validation", ()
        )

    def changes(self) -> dict[str, Any]:
        """The keys that change."""
        width = self._heads()
        for key in sorted(self._own):
            if self._size(key) and _WIDTHS.match(key) and key not in self._new:
                least = 16 if "head_dim" in key and self._values[key] >= 16 else 8
                self._put(key, _to(self._values[key], self._scale, least))
        self._experts()
        self._mixers()
        for key in _WINDOWS:
            if self._size(key):
                self._put(key, min(self._values[key], max(1, self._sequence // 2)))
        self._words()
        self._rotary(*width)
        for key in self._given.keys() - self._values:  # another name, which the library drops
            alike = [n for n in self._new if self._size(n) and self._size(n) == self._given[key]]
            if alike:
                self._new[key] = self._new[alike[0]]
        return self._new

    def _size(self, key: str) -> int:
        """The value of a key if it is a size, else 0."""
        value = self._values.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    def _put(self, key: str, value: object) -> None:
        if key in self._own and self._values.get(key) != value:
            self._new[key] = value

    def _first(self, names: tuple[str, ...]) -> str:
        return next((key for key in names if self._size(key) > 0 and key in self._own), "")

    def _heads(self) -> tuple[int, int]:
        """Heads, their width and hidden; the width of a head before and after."""
        hidden_key, head_key = self._first(_HIDDEN), self._first(_HEADS)
        group_key = self._first(_GROUPS)
        hidden, heads = self._size(hidden_key), self._size(head_key) or 1
        groups = self._size(group_key) or heads
        fewer = min(groups, 2)
        new_heads = fewer * min(max(1, heads // groups), 4)
        for names, count in ((_HEADS, new_heads), (_GROUPS, fewer)):
            for key in names:
                if self._size(key):
                    self._put(key, count)
        told = self._first(("head_dim", "d_kv"))
        width = self._size(told) or (hidden // heads if hidden else 8)
        new_width = _to(width, self._scale, min(width, 16))
        if told:
            self._put(told, new_width)
        if hidden and (not told or hidden == heads * width):
            self._put(hidden_key, new_heads * new_width)
        elif hidden:
            unit = 8 * new_heads
            self._put(hidden_key, -(-max(32, hidden // self._scale) // unit) * unit)
        return width, new_width

    def _experts(self) -> None:
        chosen = self._size(self._first(_CHOSEN)) or 1
        groups, of_groups = self._size("n_group") or 1, self._size("topk_group") or 1
        fewest = max(2 * chosen, 2 * groups, 4, -(-chosen // of_groups) * groups)
        for key in _EXPERTS:
            if self._size(key) > 1:
                self._put(key, min(self._values[key], -(-fewest // groups) * groups))

    def _mixers(self) -> None:
        if self._size("mamba_num_heads"):
            groups = self._size("n_groups") or self._size("mamba_n_groups") or 1
            self._put("mamba_num_heads", 2 * groups)
            self._put("ssm_state_size", 16)
        if keys := self._size("linear_num_key_heads"):
            self._put("linear_num_key_heads", 2)
            self._put("linear_num_value_heads", 2 * (self._size("linear_num_value_heads") // keys))
        for heads, width, expand in _STATE_HEADS:
            inner = self._size(expand) * self._size(self._first(_HIDDEN))
            if inner and inner == self._size(heads) * self._size(width):
                hidden = self._new.get(self._first(_HIDDEN), 0)
                each = self._new.get(width, self._size(width))
                self._put(heads, max(1, self._size(expand) * hidden // each))

    def _words(self) -> None:
        if self._size("vocab_size"):
            self._put("vocab_size", min(self._values["vocab_size"], MOST_WORDS))
        words = self._new.get("vocab_size", 0)
        for key in (key for key in sorted(self._own) if key.endswith("_token_id") and words):
            value = self._values.get(key)
            if isinstance(value, list):
                self._new[key] = [each % words for each in value]
            elif isinstance(value, int) and value >= words:
                ends = key.startswith(("pad", "bos", "eos"))
                self._new[key] = None if ends else words - 1 - value % 16

    def _rotary(self, width: int, new_width: int) -> None:
        """The lists of rotary positions, one entry for each pair of a head's numbers."""
        if self._size("rotary_dim"):
            self._put("rotary_dim", min(self._values["rotary_dim"], new_width))
        half = new_width // 2
        sections = [half - 2 * (3 * half // 8), 3 * half // 8, 3 * half // 8]
        found = False
        for key in _ROTARY:
            if not isinstance(given := self._given.get(key), dict):
                continue
            made = dict(given)
            for name in ("short_factor", "long_factor"):
                if name in made:
                    made[name] = made[name][: max(1, len(made[name]) * new_width // width)]
            if "mrope_section" in made:
                made["mrope_section"], found = sections, True
            if made != given:
                self._new[key] = made
        if self._code_sections and not found:  # the library's own fit its own width alone
            before = self._values.get("rope_parameters") or {}
            self._new["rope_parameters"] = {**before, "mrope_section": sections}
