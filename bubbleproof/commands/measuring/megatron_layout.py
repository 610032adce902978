"""``bubbleproof measure FILE.layout``: what a layout string of Megatron says.

``--json`` prints ``layers`` (of the model), ``ranks``, ``chunks``, and ``stages``: a list of
``stage``, ``rank``, ``chunk``, ``layers``, layers of multi-token ``prediction``, and whether it has
the ``embedding`` and the ``loss``. Ranks and chunks are null where the file has no size of the
pipeline.
"""

from __future__ import annotations

from bubbleproof.commands.first_lines import print_rows
from bubbleproof.commands.options.shared_options import Detail
from bubbleproof.commands.output import HOLDS, counted, print_json, print_text
from bubbleproof.formats.layout_string import MegatronLayout, read_layout


def measure_layout(path: str, *, json: bool) -> int:
    """Print its stages."""
    found = read_layout(path)
    stages = [_stage(found, number) for number in range(len(found.stages))]
    ranks = found.num_ranks
    chunks = None if ranks is None else len(stages) // ranks
    if json:
        print_json(
            {"layers": sum(found.layers), "ranks": ranks, "chunks": chunks, "stages": stages}
        )
        return HOLDS
    cut = " | ".join(map(str, found.layers))
    on = "" if ranks is None else f" on {counted(ranks, 'rank')}, VPP {chunks}"
    print_text(f"{sum(found.layers)} layers in {counted(len(stages), 'stage')}{on}: {cut}")
    rows = [
        (str(number), "" if ranks is None else str(number % ranks), " ".join(_parts(letters)))
        for number, letters in enumerate(found.stages)
    ]
    print_rows("", ("stage", "rank", "what it has"), rows, Detail())
    return HOLDS


def _stage(found: MegatronLayout, number: int) -> dict[str, object]:
    letters, ranks = found.stages[number], found.num_ranks
    return {
        "stage": number,
        "rank": None if ranks is None else number % ranks,
        "chunk": None if ranks is None else number // ranks,
        "layers": letters.count("t"),
        "embedding": "E" in letters,
        "loss": "L" in letters,
        "prediction": letters.count("m"),
    }


def _parts(letters: tuple[str, ...]) -> list[str]:
    """What a stage has, in the order of the layout's letters."""
    layers, predicted = letters.count("t"), letters.count("m")
    found = ["embedding,"] * ("E" in letters) + [f"{counted(layers, 'layer')},"] * bool(layers)
    found += [f"{counted(predicted, 'prediction layer')},"] * bool(predicted)
    found += ["loss,"] * ("L" in letters)
    return [*found[:-1], found[-1].rstrip(",")] if found else ["nothing"]
