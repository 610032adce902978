"""Megatron's layout strings: which layers each stage has, read and written.

Stages stand in the order in which they run. ``E`` is the embedding, ``t`` a decoder layer, ``m`` a
layer of multi-token prediction, ``L`` the loss with the head; ``|`` ends a stage. ``t*3`` repeats
what stands before it, ``(tt|)*29`` what stands in parentheses, each once and from the left: a
repetition within another is none. Commas are dropped; a stage may be without layers. Stage i is on
pipeline rank i mod p, as chunk i div p. Source: Megatron-LM,
``megatron/core/transformer/pipeline_parallel_layer_layout.py``. Its parser was given 60,000 drawn
strings (megatron-core 0.19.2 and 0.16.1, ``benchmarks/frameworks``) and read each as this reader
does; 600 of its answers are recorded, and compared by the tests.

>>> layout_of((20, 20))
'Et*20|t*20L'
>>> layers_of("Et*3|(tt|)*2,m|L")
(('E', 't', 't', 't'), ('t', 't'), ('t', 't'), ('m',), ('L',))
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bubbleproof.formats.errors import UnusableInput, about
from bubbleproof.formats.files import read_text

LETTERS = "EtmL"
_GROUP = re.compile(r"\(([^)]+)\)\*(\d+)")
_LETTER = re.compile(r"(.)\*(\d+)")
MOST = 1 << 16  # letters of a layout written out, bytes of its file


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
    predicting = [number for number, stage in enumerate(stages) if "m" in stage]
    if len(predicting) > 1 or "t" in flat[flat.index("m") if predicting else len(flat) :]:
        raise ValueError(
            f"a layout has all layers m in one stage, behind every layer t, got {layout[:60]!r}"
        )
    return stages


def _written_out(text: str, pattern: re.Pattern[str]) -> str:
    """Every repetition of the pattern once, from the left: what comes of it is not read again."""
    repeated = [(len(found.group(1)), found.group(2)) for found in pattern.finditer(text)]
    if any(len(count) > 6 for _, count in repeated) or (
        len(text) + sum(size * int(count) for size, count in repeated) > MOST
    ):
        raise ValueError(f"a layout has at most {MOST} letters, got {text[:60]!r}")
    return pattern.sub(lambda found: found.group(1) * int(found.group(2)), text)


_OPTION = r"--pipeline-model-parallel-{}[\s=]+[\"']?([^\s\"']+)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MegatronLayout:
    """A layout as a file has it: the letters of each stage, in the order in which stages run.

    ``num_ranks`` is that of the pipeline, where the file says it.
    """

    stages: tuple[tuple[str, ...], ...]
    num_ranks: int | None = None

    @property
    def layers(self) -> tuple[int, ...]:
        """The decoder layers of each stage."""
        return tuple(stage.count("t") for stage in self.stages)


def read_layout(path: str) -> MegatronLayout:
    """The layout of a file: its string alone, or among the arguments of a training.

    Raises ``UnusableInput`` for what is none, and for ranks that do not divide its stages.
    """
    text = read_text(path, limit=MOST)
    found = re.search(_OPTION.format("layout"), text)
    size = re.search(_OPTION.format("size"), text) if found else None
    with about(path):
        if found is None and text.lstrip().startswith("-"):
            expected = "--pipeline-model-parallel-layout among the arguments"
            raise UnusableInput("", expected, "none")
        try:
            stages = layers_of(re.sub(r"\s", "", text) if found is None else found[1])
        except ValueError as error:
            raise UnusableInput("", "a Megatron layout", str(error)) from None
        if size is None:
            return MegatronLayout(stages=stages)
        ranks = int(size[1]) if re.fullmatch(r"[1-9][0-9]{0,8}", size[1]) else 0
        if not ranks or len(stages) % ranks:
            expected = f"a pipeline size that divides the {len(stages)} stages of the layout"
            raise UnusableInput("", expected, size[1])
        return MegatronLayout(stages=stages, num_ranks=ranks)
