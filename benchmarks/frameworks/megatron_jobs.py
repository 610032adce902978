"""Jobs that are planned for Megatron-core, and the arguments that hand-over writes of each plan.

Each lists one deployment, so that its plan is one of Megatron's orders and takes no search. Of
those that Megatron runs its parser and ``validate_args`` are asked (``ask_megatron``); the others
are refused by name, where the plan is made.
"""

from __future__ import annotations

from pathlib import Path

import bubbleproof as bp
from bubbleproof.formats.plans.plan_json import read_plan
from bubbleproof.hand_over.handed_over import handed_schedule
from bubbleproof.hand_over.megatron_target import ARGUMENTS, megatron_files

MIXTURE = """family = "mixture"
layers = 16
hidden = 2048
heads = 32
kv_heads = 4
head_width = 128
feed_forward = 768
vocabulary = 151936
experts = 128
experts_per_token = 8"""
LATENT = """family = "mixture"
layers = 8
hidden = 2048
heads = 16
head_width = 128
kv_rank = 512
query_rank = 1536
rope_width = 64
feed_forward = 1408
vocabulary = 102400
experts = 64
experts_per_token = 6
shared_feed_forward = 2816"""


def job(model: str, cards: int, samples: int, plan: str, cluster: str = "") -> str:
    """The text of a file that lists one deployment."""
    told = model if "=" in model else f'name = "{model}"'
    return (
        f"[model]\n{told}\n[cluster]\ncard = 'h100'\ncards = {cards}\n{cluster}\n"
        f"[batch]\nsamples = {samples}\nsequence = 2048\n"
        f"[plan]\nframework = 'megatron-core-0.19'\nmicro_batch = [1]\n{plan}"
    )


PLAIN = 'framework = "megatron-core"'
JOBS = {
    "no pipeline": job("llama-3.2-1b", 4, 8, "pipeline=[1]\ntensor=[2]\ndata=[2]\nzero=[1]"),
    "1F1B": job("llama-3-8b", 8, 8, "pipeline=[4]\ntensor=[2]\ndata=[1]\nchunks=[1]"),
    "plain software": job(
        "llama-3-8b", 16, 8, "pipeline=[4]\ntensor=[2]\ndata=[2]\nchunks=[2]\nzero=[1]", PLAIN
    ),
    "groups of five": job("llama-3-8b", 4, 5, "pipeline=[4]\ntensor=[1]\ndata=[1]\nchunks=[2]"),
    "context, uneven": job(
        "llama-3-70b",
        64,
        36,
        "pipeline=[4]\ntensor=[4]\ndata=[2]\ncontext=[2]\nchunks=[7]\nzero=[1]\nscope=['none']",
    ),
    "experts over replicas": job(
        MIXTURE, 16, 16, "pipeline=[2]\ntensor=[2]\ndata=[4]\nexpert=[4]\nchunks=[2]\nzero=[1]"
    ),
    "experts over more": job(
        MIXTURE, 32, 64, "pipeline=[4]\ntensor=[2]\ndata=[4]\nexpert=[8]\nchunks=[1]\nzero=[1]"
    ),
    "latent attention": job(
        LATENT, 8, 8, "pipeline=[2]\ntensor=[2]\ndata=[2]\nexpert=[2]\nchunks=[1]\nzero=[0]"
    ),
    "learned positions": job(
        "gpt3-6.7b", 16, 16, "pipeline=[4]\ntensor=[4]\ndata=[1]\nchunks=[2]\nscope=['full']"
    ),
    "biases of queries": job(
        "qwen2.5-7b", 8, 8, "pipeline=[4]\ntensor=[2]\ndata=[1]\nscope=['attention']\nchunks=[1]"
    ),
    "eight bits": job(
        "llama-3-8b", 16, 16, "pipeline=[2]\ntensor=[4]\ndata=[2]\nchunks=[4]", "products = 'fp8'"
    ),
    "16-bit gradients": job(
        "llama-3-8b",
        16,
        16,
        "pipeline=[4]\ntensor=[2]\ndata=[2]\nchunks=[1]\nprecision='bf16-gradients'\nzero=[1]",
    ),
}
REFUSED = {
    "parallel layers": job("falcon-40b", 64, 64, "pipeline=[4]\ntensor=[4]\ndata=[4]"),
    "shared weights": job("llama-3-8b", 16, 16, "pipeline=[2]\ntensor=[4]\ndata=[2]\nzero=[3]"),
    "waves": job(
        "llama-3-8b", 8, 8, "pipeline=[4]\ntensor=[2]\ndata=[1]\nplacements=['wave']\nchunks=[2]"
    ),
    "six numbers": job("llama-3-8b", 8, 8, "pipeline=[4]\ntensor=[2]\nprecision='bpipe'"),
}


def planned_arguments(text: str, folder: Path) -> tuple[int, str]:
    """The cards of a job, and the arguments of its plan.

    Raises ``ValueError`` where it has none.
    """
    file = folder / "job.toml"
    file.write_text(text, encoding="utf-8")
    bp.write(folder / "plan", bp.plan(file, work=1))
    handed = handed_schedule(read_plan(folder / "plan" / "plan.json"))
    files = megatron_files(handed).files
    return handed.require_plan("megatron").deployment.devices, files[ARGUMENTS]
