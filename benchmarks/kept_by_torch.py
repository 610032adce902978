"""What torch keeps of each kind of layer for its backward, beside what is counted (``costs``).

``python -m benchmarks.kept_by_torch [FILE.json]`` measures ``NAMES``, configurations of the
package of every kind of layer, ``SCALE`` times narrower, in bfloat16, and writes what it found.
Transformers' own modules run one forward under ``saved_tensors_hooks``: the bytes of every storage
that autograd keeps in a layer, weights, masks and rotary tables apart. Fused kernels take the place
of what transformers computes step by step on a CPU; each keeps what the kernels of that name keep:

- an attention its q, k, v (of their own storage), output, and a number a head in 32 bits; a norm
  its input and its statistics, a gated norm its gate as well; a GeLU its input;
- ``mamba_split_conv1d_scan_combined`` (mamba-ssm) its input, the scan's output, and what a norm
  keeps, and hands the product with the output's weights on to torch, as Megatron-LM does;
  ``selective_scan_fn`` its inputs and output, ``causal_conv1d_fn`` its input;
- ``chunk_gated_delta_rule`` (fla) normed q and k, v, rates, the factors of chunks of 64 tokens.

States at the ends of chunks are left out. ``routing`` is what the choice of experts keeps beside:
indices, weights of the chosen, and a router's own input where it computes in 32 bits; transformers
keeps it, frameworks in part. ``steps`` are what transformers keeps more of activations that it
computes step by step on any device.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from unittest.mock import patch

import torch
import typer
from torch import nn

from bubbleproof.costs import Deployment, Transformer, layer_operations, layer_saved
from bubbleproof.costs.configurations.config_file import read_configuration
from bubbleproof.costs.further_layers import kind_name
from bubbleproof.costs.known_models import CONFIGURATIONS
from bubbleproof.costs.saved_bytes import operation_saved

SCALE, LAYERS, TOKENS, CHUNK = 16, 4, 61, 64
AT = Deployment(sequence=TOKENS, accounting="fused")
NAMES = (
    "llama-3.1-8b", "qwen3-8b", "gemma-2-9b", "gemma-3-1b", "olmo-2-7b", "gpt-neox-20b", "opt-66b",
    "command-r-plus", "nemotron-4-340b", "deepseek-v3", "glm-4.5-air", "mixtral-8x7b",
    "gpt-oss-20b", "mamba2-2.7b", "jamba-v0.1", "nemotron-h-8b", "qwen3-next-80b-a3b",
)  # fmt: skip
IN_STEPS = ("bloom", "falcon", "gpt_neo", "codegen")  # of attentions that transformers has so alone
EVERY_EXPERT = ("llama4_text",)  # of which transformers multiplies each with every token
NO_KEYS = ("model_type", "architectures", "quantization_config", "auto_map")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLayer:
    """Bytes of one layer: counted, kept by torch, and kept for the choice of experts."""

    kind: str
    counted: int
    kept: int
    routing: int


def small_configuration(name: str) -> dict[str, Any]:
    """The keys of a configuration, narrower and of few layers, of every kind that it has."""
    from bubbleproof.reference_exec.models.hf_scale import narrowed, with_layers

    content = json.loads((CONFIGURATIONS / f"{name}.json").read_text("utf-8"))
    if content["model_type"] in IN_STEPS:
        raise ValueError("transformers has its attention in steps alone")
    small = narrowed(content, _config(content), SCALE, TOKENS)
    text = small.get("text_config", small)
    with_layers(text, _config(small).get_text_config(), _layers(name))
    if "hybrid_override_pattern" in text:  # which the library reads alone
        text["num_hidden_layers"] = len(text["hybrid_override_pattern"])
        for key in {*text} - {*content}:  # of layers that the pattern has not
            if "moe" in key or "expert" in key:
                del text[key]
    text |= {key: 0.0 for key in text if "drop" in key and isinstance(text[key], float)}
    if "word_embed_proj_dim" in text:
        text["word_embed_proj_dim"] = text["hidden_size"]
    return small


def _layers(name: str) -> int:
    """As many as all kinds need."""
    model = read_configuration(f"hf:{CONFIGURATIONS / name}.json").model
    first = {kind: None for kind, _ in model.layer_runs if not kind.tokens}
    found = 0
    for kind, count in model.layer_runs:
        found += 0 if kind.tokens else count if first else 0
        if first.pop(kind, 0) is None and not first:
            found -= count - 1
    return max(found, LAYERS)


def _config(content: dict[str, Any]) -> Any:
    import transformers

    keys = {key: value for key, value in content.items() if key not in NO_KEYS}
    return transformers.CONFIG_MAPPING[content["model_type"]](**keys)


def shape_of(content: dict[str, Any], *, with_library: bool | None = None) -> Transformer:
    """The shape that a configuration is read as."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(content))
        return read_configuration(f"hf:{path}", with_library=with_library).model


def counted_layers(content: dict[str, Any], *, with_library: bool | None = None) -> list[KeptLayer]:
    """What is counted of each layer of a decoder, without the router's rates."""
    found = []
    for kind, count in shape_of(content, with_library=with_library).layer_runs:
        rates = sum(
            operation_saved(o, kind, AT) for o in layer_operations(kind) if o.name == "router"
        )
        bytes_ = int(layer_saved(kind, AT) - rates + TOKENS * steps(kind))
        row = KeptLayer(kind=kind_name(kind), counted=bytes_, kept=0, routing=0)
        found += [row] * (0 if kind.tokens else count)
    return found


def steps(kind: Transformer) -> Fraction:
    """Bytes of a token: of a gate its sigmoid; of the rates of a delta rule what their softplus
    reads and makes, in 32 bits; of GPT-OSS's experts, which clamp and shift both halves, three
    passes over what they make."""
    found = Fraction(0)
    for each in layer_operations(kind):
        if each.name == "output gate":
            found += AT.rules.element * each.kept
        elif each.name == "rates":
            found += 3 * each.kept
        elif each.name == "router bias":
            found += 3 * AT.rules.element * kind.experts_per_token * kind.feed_forward
    return found


def kept_layers(content: dict[str, Any], *, frozen: bool = False) -> list[KeptLayer]:
    """The same with what torch keeps of it, its layers' weights trained or ``frozen``."""
    import transformers

    config = _config(content)
    auto: Any = transformers.AutoModelForCausalLM
    if "vision_config" in content:
        auto = transformers.AutoModelForImageTextToText
    model = model_of(auto, config)
    if content["model_type"] in EVERY_EXPERT:
        content = {**content, "num_experts_per_tok": config.num_local_experts}
    elif any("xperts" in type(each).__name__ for each in model.modules()):
        model.set_experts_implementation("grouped_mm")
    counted = counted_layers(content)
    lists = [each for each in model.modules() if isinstance(each, nn.ModuleList)]
    blocks = max((each for each in lists if len(each) == len(counted)), key=_weights)
    blocks.requires_grad_(not frozen)
    words = torch.zeros(1, TOKENS, dtype=torch.long)
    found = kept_in(model, blocks, TOKENS, lambda: model(input_ids=words, use_cache=False))
    return [
        KeptLayer(kind=one.kind, counted=one.counted, kept=kept, routing=routing)
        for one, (kept, routing) in zip(counted, found, strict=True)
    ]


def model_of(auto: Any, config: Any) -> Any:
    """A model in bfloat16 whose attention is the kernel of this module."""
    import transformers

    transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS.register("counted", _attention)
    return auto.from_config(config, attn_implementation="counted", dtype=torch.bfloat16).train()


def kept_in(
    model: nn.Module, blocks: nn.ModuleList, tokens: int, run: Callable[[], object]
) -> list[tuple[int, int]]:
    """Bytes that a run of a model keeps in each of its blocks, and of these for routing."""
    with _fused(model):
        ledger = _Ledger(model, blocks, tokens)
        with torch.autograd.graph.saved_tensors_hooks(ledger.pack, lambda each: each):
            run()
    return ledger.layers


def _weights(module: nn.Module) -> int:
    return sum(each.numel() for each in module.parameters())


class _Ledger:
    """The storages that autograd keeps in each block, by the module that runs."""

    def __init__(self, model: nn.Module, blocks: nn.ModuleList, tokens: int) -> None:
        self._tokens, self._hidden = tokens, 0
        self.layers = [(0, 0) for _ in blocks]
        self._number = {id(block): number for number, block in enumerate(blocks)}
        self._seen = {_storage(each) for each in (*model.parameters(), *model.buffers())}
        self._alive: list[object] = []
        self._layer: int | None = None
        self._running: list[str] = []
        for name, module in model.named_modules():
            module.register_forward_pre_hook(self._enter(name), with_kwargs=True)
            module.register_forward_hook(self._leave)

    def _enter(self, name: str) -> Callable[[nn.Module, Any, Any], None]:
        def enter(module: nn.Module, given: Any, named: Any) -> None:
            self._running.append(name.rpartition(".")[2])
            if id(module) in self._number:
                self._layer = self._number[id(module)]
                self._hidden = given[0].shape[-1]
                self._leave_out([*given[1:], *named.values()])

        return enter

    def _leave_out(self, given: list[Any]) -> None:
        """What a layer is handed beside the stream: masks, rotary tables."""
        for each in given:
            if isinstance(each, torch.Tensor):
                self._alive.append(each)
                self._seen.add(_storage(each))
            elif isinstance(each, tuple | list):
                self._leave_out([*each])

    def _leave(self, module: nn.Module, *_: object) -> None:
        self._running.pop()
        if id(module) in self._number:
            self._layer = None

    def pack(self, kept: torch.Tensor) -> torch.Tensor:
        """A tensor that autograd keeps."""
        self._alive.append(kept)
        if self._layer is not None and _storage(kept) not in self._seen:
            self._seen.add(_storage(kept))
            bytes_ = kept.untyped_storage().nbytes()
            bytes_ *= bytes_ % self._tokens == 0  # of all tokens; the rest is made of weights alone
            here, routing = self.layers[self._layer]
            is_routing = self._is_routing(kept)
            self.layers[self._layer] = (
                here + bytes_ * (not is_routing),
                routing + bytes_ * is_routing,
            )
        return kept

    def _is_routing(self, kept: torch.Tensor) -> bool:
        """Whether it serves the choice of experts alone."""
        if not kept.is_floating_point():
            return True
        inside = self._running[-1]
        is_stream = kept.dtype == torch.bfloat16 and kept.shape[-1] == self._hidden
        return (inside in ("gate", "router") and not is_stream) or (
            inside == "experts" and kept.ndim > 0 and kept.shape[-1] == 1
        )


def _storage(each: torch.Tensor) -> int:
    return int(each.untyped_storage()._cdata)


class _Keeping(torch.autograd.Function):
    """A kernel that keeps these tensors and makes zeros of a shape; it has no backward."""

    @staticmethod
    def forward(
        ctx: Any, shape: tuple[int, ...], keeps: bool, *given: torch.Tensor
    ) -> torch.Tensor:
        made = torch.zeros(shape, dtype=torch.bfloat16)
        ctx.save_for_backward(*given, *([made] if keeps else []))
        return made


def _kernel(shape: Any, *given: torch.Tensor, keeps: bool = False) -> torch.Tensor:
    made: torch.Tensor = _Keeping.apply(tuple(shape), keeps, *given)  # type: ignore[no-untyped-call]  # torch's
    return made


def _statistics(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.float32)


def _own(each: torch.Tensor) -> torch.Tensor:
    """Of a storage of its own."""
    return each if each.untyped_storage().nbytes() == each.nbytes else each.clone()


def _attention(
    _module: nn.Module, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_: object, **__: object
) -> tuple[torch.Tensor, None]:
    batch, heads, tokens, _width = q.shape
    given = (q, k, _own(v), _statistics(batch, heads, tokens))
    return _kernel((batch, tokens, heads, v.shape[-1]), *given, keeps=True), None


def _norm(module: nn.Module) -> Callable[..., torch.Tensor]:
    number = 2 if "LayerNorm" in type(module).__name__ else 1

    def forward(x: torch.Tensor, gate: torch.Tensor | None = None) -> torch.Tensor:
        gates = () if gate is None else (gate,)
        return _kernel(x.shape, x, *gates, *(_statistics(*x.shape[:-1]) for _ in range(number)))

    return forward


def _convolution(x: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
    return _kernel(x.shape, x)


def _combined(x: torch.Tensor, *_: object, **told: Any) -> torch.Tensor:
    """mamba-ssm's: the scan's output is kept beside the input, which holds the gate."""
    inner = told["outproj_weight"].shape[1]
    scanned = torch.zeros(*x.shape[:2], inner, dtype=x.dtype)
    made = _kernel(scanned.shape, x, scanned, _statistics(*x.shape[:2], told["ngroups"]))
    return nn.functional.linear(made, told["outproj_weight"], told["outproj_bias"])


def _selective(
    x: torch.Tensor, step: torch.Tensor, _a: object, b: torch.Tensor, c: torch.Tensor, *_: object,
    z: torch.Tensor, **__: object,
) -> torch.Tensor:  # fmt: skip
    scanned = torch.zeros_like(x)
    return _kernel(x.shape, x, step, b.contiguous(), c.contiguous(), z, scanned)


def _delta(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, beta: torch.Tensor,
    **_: object,
) -> tuple[torch.Tensor, None]:  # fmt: skip
    batch, tokens, heads, _width = v.shape
    factors = torch.zeros(batch, tokens, heads, CHUNK, dtype=v.dtype)
    given = (q.clone(), k.clone(), v.clone(), factors)
    rates = (torch.zeros_like(g, dtype=torch.float32), beta)
    norms = [_statistics(*each.shape[:-1]) for each in (q, k)]
    return _kernel(v.shape, *given, *rates, *norms), None


KERNELS: dict[str, Callable[..., object]] = {
    "causal_conv1d_fn": _convolution,
    "mamba2_split_conv1d_scan_combined": _combined,
    "mamba_selective_scan": _selective,
    "torch_chunk_gated_delta_rule": _delta,
}


@contextmanager
def _fused(model: nn.Module) -> Iterator[None]:
    """The kernels in place of the steps."""
    with ExitStack() as stack:
        for module in model.modules():
            name = type(module).__name__
            if name.endswith("Norm") or "RMSNorm" in name or "LayerNorm" in name:
                stack.enter_context(patch.object(module, "forward", _norm(module)))
            elif "GELU" in name:
                stack.enter_context(patch.object(module, "forward", nn.functional.gelu))
            home = sys.modules[type(module).__module__]
            for kernel, stands in KERNELS.items():
                if hasattr(home, kernel):
                    stack.enter_context(patch.object(home, kernel, stands))
        yield


def told(name: str) -> str:
    """One configuration's layers in a few words: equal, or by how much torch keeps more."""
    rows = {each.kind: each for each in kept_layers(small_configuration(name))}.values()
    worst = max(rows, key=lambda one: abs(one.kept / one.counted - 1))
    share = f"{100 * (worst.kept / worst.counted - 1):+.1f} % ({worst.kind})"
    routing = max(100 * one.routing / one.counted for one in rows)
    chosen = f", routing {routing:.1f} %" if routing else ""
    return ("equal" if worst.kept == worst.counted else share) + chosen


def main(write: Annotated[Path, typer.Argument(help="The file.")]) -> None:
    """Measure; see the module's text."""
    found = {}
    for name in NAMES:
        content = small_configuration(name)
        rows = kept_layers(content)
        found[name] = {"config": content, "kept": [[one.kept, one.routing] for one in rows]}
        typer.echo(f"{name}: {set(rows)}")
    write.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
