"""Megatron-core's own schedule functions and layout parser, called on a CPU.

Runs where ``ask_megatron`` has installed the wheel; of bubbleproof it runs a script that stands
alone. Reads ``{"shapes": [[p, v, m, G], ...], "layouts": [text, ...], "arguments": [[cards, text],
...]}`` and prints the version and, of each, its answer. The whole of
``forward_backward_pipelining_with_interleaving`` (one chunk: ``..._without_interleaving``) runs for
every rank; its forward and backward step are replaced by recorders, and its communicator answers at
once. So an order is the calls that Megatron makes, and a refusal is the error that it raises.
Arguments go through its parser, ``validate_args`` and configuration, and then make its process
groups, without processes.
"""

from __future__ import annotations

import json
import sys
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path
from runpy import run_path
from types import ModuleType, SimpleNamespace
from typing import Any

CORE = "megatron.core"
READER = Path(__file__).parents[2] / "bubbleproof/hand_over/launched/read_arguments.py"
Order = list[tuple[str, int, int]]  # F or B, chunk, microbatch


class _Group:
    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = (lambda: rank), (lambda: size)


def _always(answer: Any) -> Any:
    return lambda *_, **__: answer


class _Answering:
    """A communicator whose every receive has come, for the methods that schedules call."""

    def __init__(self, rank: int, p: int, v: int, config: Any) -> None:
        self.pp_group, self.config = _Group(rank, p), config
        self.virtual_pipeline_model_parallel_size = v if v > 1 else None
        self.is_pp_first_stage, self.is_pp_last_stage = rank == 0, rank == p - 1
        self.total_stages, self.current_stage, self.num_warmup_microbatches = p, rank, p - rank - 1

    def _handles(self, overlap_p2p_comm: bool = False, **_: Any) -> Any:
        done = SimpleNamespace(wait=lambda: None)
        names = ("send_next", "send_prev", "recv_next", "recv_prev")
        return ("token", dict.fromkeys(names, done)) if overlap_p2p_comm else "token"

    def __getattr__(self, name: str) -> Any:
        if name in ("send_forward_recv_forward", "send_backward_recv_backward"):
            return lambda *_, **kwargs: self._handles(**kwargs)
        if name == "send_forward_backward_recv_forward_backward":
            return _always(("token", "token"))
        if name.startswith(("send_", "recv_")):
            return _always("token")
        raise AttributeError(name)


class _Megatron:
    """The modules of the wheel."""

    def __init__(self) -> None:
        self.torch = import_module("torch")
        run_path(str(Path(__file__).with_name("stand_in.py")))["stand_in"]()
        self.version: str = import_module(f"{CORE}.package_info").__version__
        self.schedules: Any = import_module(f"{CORE}.pipeline_parallel.schedules")
        self.config = import_module(f"{CORE}.transformer.transformer_config").TransformerConfig
        layouts = import_module(f"{CORE}.transformer.pipeline_parallel_layer_layout")
        self.layout = layouts.PipelineParallelLayerLayout
        groups = import_module(f"{CORE}.process_groups_config")
        self.groups = groups.ProcessGroupCollection()
        for name in ("tp", "cp", "embd", "pos_embd", "pp", "dp_cp"):
            setattr(self.groups, name, _Group(0, 1))
        instead = {"torch": _OnCpu(self.torch), "deallocate_output_tensor": _always(None)}
        vars(self.schedules).update(instead)

    def orders(self, p: int, v: int, m: int, group: int | None) -> list[Order]:
        """What each rank calls. Raises whatever Megatron raises."""
        config = self.config(
            num_layers=p * v,
            hidden_size=64,
            num_attention_heads=4,
            pipeline_model_parallel_size=p,
            virtual_pipeline_model_parallel_size=v if v > 1 else None,
            microbatch_group_size_per_vp_stage=group,
            overlap_p2p_comm=False,
            batch_p2p_comm=True,
            pipeline_dtype=self.torch.float32,
            deallocate_pipeline_outputs=False,
        )
        return [self._order(rank, p, v, m, config) for rank in range(p)]

    def _order(self, rank: int, p: int, v: int, m: int, config: Any) -> Order:
        order: Order = []

        def forward_step(*_: Any, **kwargs: Any) -> Any:
            chunk = kwargs.get("vp_stage") or 0
            order.append(("F", chunk, kwargs["current_microbatch"]))
            return (chunk, kwargs["current_microbatch"]), self.torch.tensor(0)

        def backward_step(_: Any, output: tuple[int, int], *__: Any) -> Any:
            order.append(("B", *output))
            return "gradient"

        self.schedules.forward_step = forward_step
        self.schedules.backward_step = backward_step
        chunks = [self.torch.nn.Module() for _ in range(v)]
        for chunk in chunks:
            chunk.config, chunk.model_type = config, None
        name = "with" if v > 1 else "without"
        getattr(self.schedules, f"forward_backward_pipelining_{name}_interleaving")(
            forward_step_func=None,
            data_iterator=[None] * v,
            model=chunks,
            num_microbatches=m,
            seq_length=8,
            micro_batch_size=1,
            p2p_communicator=_Answering(rank, p, v, config),
            pg_collection=self.groups,
        )
        return order

    def stages(self, text: str) -> list[str]:
        """The letters of each stage, one chunk a rank. Raises whatever Megatron raises."""
        read = self.layout.parse_str_to_list(text)
        flat = [layer.name for stage in read for layer in stage]
        if not flat:
            raise ValueError("no layer at all")  # there an IndexError
        self.layout(text, len(read)).validate_layer_layout(flat.count("decoder"), flat.count("mtp"))
        letters = {"embedding": "E", "decoder": "t", "mtp": "m", "loss": "L"}
        return ["".join(letters[layer.name] for layer in stage) for stage in read]


class _OnCpu:
    """torch, whose zeros come from the CPU, whatever device is asked."""

    def __init__(self, torch: ModuleType) -> None:
        self._torch = torch

    def zeros(self, *args: Any, **kwargs: Any) -> Any:
        return self._torch.zeros(*args, **{**kwargs, "device": "cpu"})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._torch, name)


def _answer(asked: Any) -> dict[str, Any]:
    try:
        return {"told": asked()}
    except Exception as refused:  # whatever it raises is its answer
        return {"refused": f"{type(refused).__name__}: {refused}"}


def _loaded(cards: int, text: str) -> dict[str, Any]:
    """What the parser and its checks make of a training's arguments, and then the groups."""
    found = run_path(str(READER))
    answer: dict[str, Any] = found["asked"](cards, found["words_of"](text))
    if "told" in answer and (why := _no_groups(cards, answer["told"])):
        answer = {"version": answer["version"], "refused": why}
    return answer


def _no_groups(cards: int, told: dict[str, Any]) -> str:
    """Why Megatron makes no process groups of such sizes; empty where it makes them."""
    dist = import_module("torch.distributed")
    store = import_module("torch.testing._internal.distributed.fake_pg").FakeStore()
    state: Any = import_module(f"{CORE}.parallel_state")
    dist.init_process_group("fake", rank=0, world_size=cards, store=store)
    try:
        state.initialize_model_parallel(
            tensor_model_parallel_size=told["tensor"],
            pipeline_model_parallel_size=told["pipeline"],
            virtual_pipeline_model_parallel_size=told["chunks"],
            context_parallel_size=told["context"],
            expert_model_parallel_size=told["expert"],
            expert_tensor_parallel_size=told["expert tensor"],
            create_gloo_process_groups=False,
        )
    except (RuntimeError, AssertionError) as refused:
        return f"{type(refused).__name__}: {refused}"
    finally:
        state.destroy_model_parallel()
        dist.destroy_process_group()
    return ""


def main() -> None:
    """Answer what stands in the standard input."""
    warnings.simplefilter("ignore")
    asked, megatron = json.load(sys.stdin), _Megatron()
    answers = {
        "version": megatron.version,
        "shapes": [_answer(partial(megatron.orders, *shape)) for shape in asked["shapes"]],
        "layouts": [_answer(partial(megatron.stages, text)) for text in asked["layouts"]],
        "arguments": [_loaded(cards, text) for cards, text in asked["arguments"]],
    }
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
