"""Megatron's layout string: which layers each stage has, stages in the order in which they run.

``E`` is the embedding, ``t`` a decoder layer, ``m`` a layer of multi-token prediction, ``L`` the
loss with the head; ``|`` ends a stage. ``t*3`` repeats what stands before it, ``(tt|)*29`` what
stands in parentheses; commas are dropped. Stage i is on pipeline rank i mod p, as chunk i div p.
Source: Megatron-LM, ``megatron/core/transformer/pipeline_parallel_layer_layout.py``. This grammar
is ours; Megatron's parser comes with no package that runs without a GPU.

>>> layout_of((20, 20))
'Et*20|t*20L'
>>> layers_of("Et*3|(tt|)*2,m|L")
(('E', 't', 't', 't'), ('t', 't'), ('t', 't'), ('m',), ('L',))
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LETTERS = "EtmL"
_GROUP = re.compile(r"\(([^()]*)\)\*(\d+)")
_LETTER = re.compile(r"([EtmL|])\*(\d+)")
MOST = 1 << 16  # letters of a layout written out


def layout_of(layers: Sequence[int]) -> str:
    """The layout of a model whose stages have so many decoder layers, ends with their own."""
    stages = [f"t*{number}" if number > 1 else "t" * number for number in layers]
    return "E" + "|".join(stages) + "L"


def layers_of(layout: str) -> tuple[tuple[str, ...], ...]:
    """The letters of each stage. Raises ``ValueError`` naming what is no layout."""
    text = _written_out(_written_out(layout.replace(",", ""), _GROUP), _LETTER)
    stray = sorted({letter for letter in text if letter not in f"{LETTERS}|"})
    if stray:
        raise ValueError(
            f"a layout has the letters {' '.join(LETTERS)}, | and repetitions, got {stray[0]!r} "
            f"in {layout[:60]!r}"
        )
    stages = tuple(tuple(part) for part in text.split("|"))
    flat = [letter for stage in stages for letter in stage]
    if flat[:1] != ["E"] or flat[-1:] != ["L"] or flat.count("E") != 1 or flat.count("L") != 1:
        raise ValueError(f"a layout begins with one E and ends with one L, got {layout[:60]!r}")
    return stages


def _written_out(text: str, pattern: re.Pattern[str]) -> str:
    while found := pattern.search(text):
        piece, count = found.group(1), int(found.group(2))
        if len(text) + len(piece) * count > MOST:
            raise ValueError(f"a layout has at most {MOST} letters, got {text[:60]!r}")
        text = text[: found.start()] + piece * count + text[found.end() :]
    return text
