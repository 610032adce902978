"""The page ``models.md``: real models under real schedules, every cell replayed here.

    python -m proofs_tests.reference_exec.model_table --write docs/measured/models.md

A cell says what the replay's verdict is, or why it is refused. Without ``--write`` the page goes to
standard output. The exit status is 1 where a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.markdown import markdown_table
from bubbleproof.reference_exec.drivers.gloo import GlooPool
from bubbleproof.reference_exec.evidence.replay_report import ReplayReport
from bubbleproof.reference_exec.models.model_spec import ModelSpec
from proofs_tests.reference_exec.cases import family_case, run

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "measured" / "models.md"
SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 4,
    "intermediate_size": 24,
    "vocab_size": 37,
    "max_position_embeddings": 64,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 16, "n_head": 4, "n_layer": 4, "n_positions": 64, "vocab_size": 37},
    "llama": SIZES,
    "qwen3": {**SIZES, "head_dim": 4},
    "mixtral": {**SIZES, "num_local_experts": 4, "num_experts_per_tok": 2},
}
EXAMPLES = {"resnet": "resnet", "encoder-decoder": "encoder_decoder", "LoRA llama": "lora_llama"}
MODELS = (*CONFIGS, *EXAMPLES)
SCHEDULES = {  # each of four stages
    "1f1b": {"p": 4, "m": 4},
    "interleaved": {"p": 2, "m": 4, "v": 2},
    "zb-h1": {"p": 4, "m": 4},
    "bpipe": {"p": 4, "m": 6},
    "trecomp": {"p": 2, "m": 4},
    "svpp": {"p": 4, "m": 4, "s": 2},
}
DTYPES, BACKENDS = ("float32", "bfloat16"), ("virtual", "gloo")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCell:
    """A model under a schedule, in a type, on a backend."""

    model: str
    schedule: str
    dtype: str
    backend: str

    def replayed(self, folder: Path, pool: GlooPool | None) -> ReplayReport:
        """The replay. Raises ``ValueError`` where it is refused."""
        if self.model in CONFIGS:
            path = folder / f"{self.model}.json"
            path.write_text(json.dumps({"model_type": self.model, **CONFIGS[self.model]}), "utf-8")
            factory = f"hf:{path}"
        else:
            factory = f"{ROOT}/examples/model/{EXAMPLES[self.model]}.py:build"
        case = family_case(self.schedule, **SCHEDULES[self.schedule])
        spec = ModelSpec(kind="own", factory=factory, dtype=self.dtype)
        own = {"pool": pool} if self.backend == "gloo" else {}
        return run(case, spec, backend=self.backend, **own)

    def told(self, folder: Path, pool: GlooPool | None = None) -> tuple[str, str]:
        """The verdict, and beside it what was measured or why there is nothing."""
        try:
            report = self.replayed(folder, pool)
        except ValueError as error:
            return "refused", str(error).replace(str(folder), "...").replace(str(ROOT), "...")
        if report.failures:
            return "broken", "; ".join(report.failures)
        near = f"{report.max_relative_error:.0e} of {report.tolerance:.0e}"
        decided = "" if report.is_decidable else ", undecidable"
        most = max(report.peak_bytes.measured)
        return "holds", f"{near}{decided}; {most} bytes; {report.seconds:.1f} s"


def cells() -> Iterator[ModelCell]:
    """All of them."""
    for model, schedule, dtype, backend in product(MODELS, SCHEDULES, DTYPES, BACKENDS):
        yield ModelCell(model=model, schedule=schedule, dtype=dtype, backend=backend)


def page() -> tuple[str, bool]:
    """The page, and whether no promise is broken."""
    rows, verdicts = [], []
    with tempfile.TemporaryDirectory() as folder, GlooPool(4) as pool:
        for cell in cells():
            verdict, told = cell.told(Path(folder), pool)
            verdicts.append(verdict)
            rows.append((cell.model, cell.schedule, cell.dtype, cell.backend, verdict, told))
            sys.stderr.write(f"{' '.join(map(str, rows[-1]))}\n")
    counts = ", ".join(f"{verdicts.count(one)} {one}" for one in dict.fromkeys(verdicts))
    head = (
        "model",
        "schedule",
        "type",
        "backend",
        "verdict",
        "error of tolerance; peak; time, or why",
    )
    text = f"""# Real models under real schedules

Made by `python -m proofs_tests.reference_exec.model_table --write docs/measured/models.md`, on
{os.cpu_count()} cores without a GPU. Configurations of `transformers` (four layers, hidden 16), a
ResNet, an encoder-decoder and a Llama with LoRA of `examples/model`, each in four stages. A cell
*holds* where gradients and losses equal the order-matched ones bit for bit, bytes and work at
every action are the predicted ones, and the ordinary float64 backward is near: beside the error
stands its tolerance ([models](../guide/models.md)). The peak is the largest of any rank, the
time that of the ranks alone, both in one replay.

{len(verdicts)} cells: {counts}.

{markdown_table(head, rows)}"""
    return text, "broken" not in verdicts


def main() -> int:
    """Write the page; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    text, is_right = page()
    if given.write is None:
        sys.stdout.write(text)
    else:
        given.write.write_text(text, encoding="utf-8")
    return 0 if is_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
