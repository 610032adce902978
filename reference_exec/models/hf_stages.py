"""Models of transformers in stages: the model's own forward, with what is outside a stage emptied.

A stage is the whole model, whose forward runs from its first line, so that masks, rotary tables,
multipliers, caps and the head are the library's own. Its *blocks* are the members of lists of
``GradientCheckpointingLayer``, in the order in which one pass calls them. Blocks before the stage
hold nothing and hand on what was received; a hook puts what was received into the call of the first
block that stays; the block behind the stage ends the pass, and what its call was given goes on.
*What crosses is found and not written*: every tensor of that call with a gradient (of a decoder the
hidden state; of T5 position bias and encoder output too), the logits of routers that were collected
so far, and the model's inputs where they decide more than the embedding. What the same object in
successive calls was (an encoder's output) goes into every call that stays.

Modules outside blocks stay where the pass calls them; elsewhere a stub without parameters gives
zeros of the right shape. A module that the pass never calls, such as a tower without images, is
left out, and a parameter without gradient is frozen.

The stages one after the other must give the very logits of the uncut model, which is checked when
they are made: a model that cannot be cut so, or not there, is refused and not replayed wrongly.

Blocks are dealt out as evenly as they go; where that leaves some over, the stages in the middle
have one more, since the first also embeds and the last also scores. A tower that cannot be cut so
stays in the first stage whole. ``layers`` says another cut.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, product

import torch
from torch import nn

from bubbleproof.reference_exec.models.model_spec import ModelSpec
from bubbleproof.reference_exec.models.parcels import tensors_of

Place = tuple[int | str, int | None]  # an argument of a call, and where in it if it is a tuple
Inputs = Mapping[str, object]


class _Reached(Exception):  # noqa: N818 - a stage ends so, with no error
    """The pass has come to the block behind the stage."""


@dataclass(slots=True)
class _Wire:
    """What a stage was sent and what it has to send, while a pass runs."""

    received: list[tuple[Place, torch.Tensor]] = field(default_factory=list)
    routed: list[torch.Tensor] = field(default_factory=list)
    sent: list[torch.Tensor] = field(default_factory=list)

    def clear(self) -> None:
        self.received, self.routed, self.sent = [], [], []


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of a block in the uncut model: its name, what it takes with gradients, and gives."""

    name: str
    places: tuple[Place, ...]
    steady: frozenset[Place]  # places that hold what they held in the call before
    num_given: int  # things of the tuple that it gives, 0 where that is a tensor


@dataclass(frozen=True, slots=True)
class Probe:
    """What one pass of the uncut model shows: its blocks in order, and who is called when.

    ``times`` has of each module outside blocks how many blocks had begun as it was called.
    """

    calls: tuple[_Call, ...]
    times: Mapping[str, frozenset[int]]
    outcome: tuple[torch.Tensor, ...]


def block_names(model: nn.Module) -> list[str]:
    """The paths of all blocks that lie in no other block."""
    from transformers.modeling_layers import GradientCheckpointingLayer  # not everyone has it

    found: list[str] = []
    for name, module in model.named_modules():
        if not isinstance(module, nn.ModuleList) or not len(module):
            continue
        is_inside = any(name.startswith(f"{outer}.") for outer in found)
        if not is_inside and all(isinstance(each, GradientCheckpointingLayer) for each in module):
            found += [f"{name}.{number}" for number in range(len(module))]
    return found


def probed(model: nn.Module, inputs: Inputs) -> Probe:
    """One pass of the uncut model, without dropout; its parameters get gradients."""
    names, modules = block_names(model), dict(model.named_modules())
    calls: list[_Call] = []
    before: dict[Place, torch.Tensor] = {}
    times: dict[str, set[int]] = {}
    hooks = []

    def begun(name: str, _: nn.Module, args: tuple[object, ...], named: dict[str, object]) -> None:
        taken = {place: t for place, t in _leaves(args, named) if t.requires_grad}
        steady = frozenset(place for place, t in taken.items() if before.get(place) is t)
        calls.append(_Call(name, tuple(taken), steady, 0))
        before.clear()
        before.update(taken)

    def ended(number: list[int], _: nn.Module, __: object, given: object) -> None:
        last = calls[number[0]]
        length = len(given) if isinstance(given, tuple) else 0
        calls[number[0]] = _Call(last.name, last.places, last.steady, length)
        number[0] += 1

    number = [0]
    for name in names:
        block = modules[name]
        hooks.append(block.register_forward_pre_hook(partial(begun, name), with_kwargs=True))
        hooks.append(block.register_forward_hook(partial(ended, number)))
    for name, module in modules.items():
        is_inside = any(name == block or name.startswith(f"{block}.") for block in names)
        if not is_inside and [*module.parameters(recurse=False)]:
            own = times.setdefault(name, set())
            hook = module.register_forward_pre_hook(lambda *_, own=own: own.add(len(calls)))
            hooks.append(hook)
    result = model(**inputs)
    for hook in hooks:
        hook.remove()
    outcome = tensors_of(_outcome(model, result))
    torch.autograd.backward(outcome, [torch.ones_like(each) for each in outcome])
    seen = {name: frozenset(each) for name, each in times.items()}
    return Probe(tuple(calls), seen, tuple(each.detach() for each in outcome))


def _outcome(model: nn.Module, result: object) -> object:
    """The logits, with the routers' auxiliary loss where the model has computed it."""
    logits, auxiliary = result.logits, getattr(result, "aux_loss", None)  # type: ignore[attr-defined]  # every head's
    if not isinstance(auxiliary, torch.Tensor):
        return logits
    config = model.config.get_text_config()  # type: ignore[union-attr, operator]  # a PreTrainedModel's
    return logits, config.router_aux_loss_coef * auxiliary


def _leaves(
    args: Sequence[object], named: Mapping[str, object]
) -> Iterator[tuple[Place, torch.Tensor]]:
    by_place: dict[int | str, object] = dict([*enumerate(args), *named.items()])
    for outer, value in by_place.items():
        if isinstance(value, torch.Tensor):
            yield (outer, None), value
        elif isinstance(value, tuple | list):
            yield from (
                ((outer, inner), each)
                for inner, each in enumerate(value)
                if isinstance(each, torch.Tensor)
            )


class _Stub(nn.Module):
    """In the place of a module that is outside the stage; it has its plain attributes."""

    def __init__(self, of: nn.Module, forward: Callable[..., object]) -> None:
        super().__init__()
        plain = nn.Module().__dict__.keys()
        self.__dict__ |= {k: v for k, v in vars(of).items() if k not in plain and k != "forward"}
        self._given = forward
        for name, value in [*of.named_parameters(recurse=False)]:
            self.register_buffer(name, torch.empty(0, dtype=value.dtype), persistent=False)

    def forward(self, *args: object, **named: object) -> object:
        return self._given(*args, **named)


def _skipped(wire: _Wire, num_given: int, *_: object, **__: object) -> object:
    """What a block before the stage gives: what was received."""
    value = wire.received[0][1]
    return (value, *[None] * (num_given - 1)) if num_given else value


def _stopped(wire: _Wire, call: _Call, *args: object, **named: object) -> None:
    """The block behind the stage."""
    args, named = _with_received(wire, call.steady, args, named)
    found = dict(_leaves(args, named))
    wire.sent = [found[place] for place in call.places] + _routed()
    raise _Reached


def _entered(
    wire: _Wire,
    places: frozenset[Place] | None,
    _: nn.Module,
    args: tuple[object, ...],
    named: dict[str, object],
) -> tuple[tuple[object, ...], dict[str, object]]:
    """The call of a block that stays, with what was received; all of it if ``places`` is None."""
    if places is None and wire.routed:
        _routed()[:0] = wire.routed
    return _with_received(wire, places, args, named)


def _with_received(
    wire: _Wire,
    places: frozenset[Place] | None,
    args: Sequence[object],
    named: Mapping[str, object],
) -> tuple[tuple[object, ...], dict[str, object]]:
    by_place: dict[int | str, object] = dict([*enumerate(args), *named.items()])
    for (outer, inner), tensor in wire.received:
        if places is not None and (outer, inner) not in places:
            continue
        value = by_place[outer]
        if inner is not None and isinstance(value, tuple | list):
            by_place[outer] = type(value)(
                tensor if k == inner else each for k, each in enumerate(value)
            )
        else:
            by_place[outer] = tensor
    return tuple(by_place[k] for k in range(len(args))), {k: by_place[k] for k in named}


def _routed() -> list[torch.Tensor]:
    """The library's own list of the logits of routers of this pass; a list of nobody if none is."""
    from transformers.utils import output_capturing

    collected = output_capturing._active_collector.get()  # type: ignore[no-untyped-call]  # its own
    found: list[torch.Tensor] = (collected or {}).get("router_logits", [])
    return found


def _zeros(kind: nn.Module, wire: _Wire, x: torch.Tensor, *_: object, **__: object) -> torch.Tensor:
    """What a stub gives: zeros of the shape that the module would give, or what it takes."""
    dtype = wire.received[0][1].dtype
    if isinstance(kind, nn.Embedding):
        return x.new_zeros((*x.shape, kind.embedding_dim), dtype=dtype)
    if isinstance(kind, nn.Linear):
        return x.new_zeros((*x.shape[:-1], kind.out_features))
    if isinstance(kind, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        shape: torch.Tensor = kind(torch.empty_like(x, device="meta", dtype=kind.weight.dtype))
        return x.new_zeros(shape.shape)
    return x


class HfStage(nn.Module):
    """Blocks ``first`` to ``last`` of a model in the order of the probe, which it takes over."""

    def __init__(self, model: nn.Module, probe: Probe, first: int, last: int) -> None:
        super().__init__()
        self.model, self._wire = model, _Wire()
        self._places = probe.calls[first].places if first else ()
        self._stays = first == 0, last == len(probe.calls)
        self.inputs: dict[str, torch.Size] = {}  # of the words that stand for the model's inputs
        self.sends_inputs = False
        self._cut(probe, first, last)

    def _cut(self, probe: Probe, first: int, last: int) -> None:
        wire = self._wire
        for number, call in enumerate(probe.calls):
            block = self.model.get_submodule(call.name)
            if first <= number < last:
                places = None if number == first else call.steady
                if first:
                    hook = partial(_entered, wire, places)
                    block.register_forward_pre_hook(hook, with_kwargs=True)
            elif number < first:
                self._replace(call.name, partial(_skipped, wire, call.num_given))
            else:
                self._replace(call.name, partial(_stopped, wire, call))
        gone: tuple[str, ...] = ()  # those within them are gone too
        for name, times in probe.times.items():
            is_here = any(_is_at(time, first, last, len(probe.calls)) for time in times)
            if name and not is_here and not name.startswith(gone):
                gone += (f"{name}.",)
                module = copy.deepcopy(self.model.get_submodule(name)).to("meta")
                self._replace(name, partial(_zeros, module, wire))

    def _replace(self, name: str, forward: Callable[..., object]) -> None:
        outer, _, last = name.rpartition(".")
        home = self.model.get_submodule(outer)
        setattr(home, last, _Stub(self.model.get_submodule(name), forward))

    def forward(self, *given: torch.Tensor, **named: object) -> object:
        """The tensors that cross in; of the first stage the model's inputs."""
        wire, inputs, crossing = self._wire, self._named(given, named), len(self._places)
        names = [*self.inputs] if self.sends_inputs else []
        wire.received = [*zip(self._places, given, strict=False)]
        wire.routed = [*given[crossing : len(given) - len(names)]] if crossing else []
        try:
            return _outcome(self.model, self.model(**inputs))
        except _Reached:
            sent = (*wire.sent, *(inputs[name] for name in names))
            return sent if len(sent) > 1 else sent[0]
        finally:
            wire.clear()

    def _named(
        self, given: Sequence[torch.Tensor], named: Mapping[str, object]
    ) -> dict[str, object]:
        """The model's inputs: given, sent on, or of zeros that have their shapes."""
        if self._stays[0]:
            return {**named} if named else dict.fromkeys(self.inputs, given[0])
        if self.sends_inputs:
            return dict(zip(self.inputs, given[-len(self.inputs) :], strict=True))
        where = given[0].device
        return {
            name: torch.zeros(shape, dtype=torch.int64, device=where)
            for name, shape in self.inputs.items()
        }


def _is_at(time: int, first: int, last: int, num_blocks: int) -> bool:
    """Whether a stage has what is called after ``time`` blocks have begun."""
    return first < time <= last or (first == 0 == time) or (last == num_blocks == time)


def even_cut(spec: ModelSpec, num_blocks: int) -> tuple[int, ...]:
    """How many blocks each stage has. Raises ``ValueError`` where they do not make the model."""
    stages = spec.num_stages
    if isinstance(spec.layers, tuple):
        if sum(spec.layers) != num_blocks:
            raise ValueError(
                f"model {spec.factory} has {num_blocks} layers, --layers "
                f"{','.join(map(str, spec.layers))} are {sum(spec.layers)}"
            )
        return spec.layers
    if stages > num_blocks:
        raise ValueError(
            f"model {spec.factory} has {num_blocks} layers for {stages} stages; give it more "
            f"({spec.factory},num_hidden_layers={stages}) or take fewer stages"
        )
    each, more = divmod(num_blocks, stages)
    first = (stages - more) // 2
    return tuple(each + (first <= stage < first + more) for stage in range(stages))


def in_stages(
    spec: ModelSpec, whole: nn.Module, inputs: Inputs
) -> tuple[list[HfStage], tuple[str, ...]]:
    """The model in its stages, whose parameters are its own, and what was left out, a line each.

    Raises ``ValueError`` for a model that has no blocks, or that cut so is another.
    """
    whole.eval()  # without dropout, and in training mode when it leaves here
    probe = probed(whole, inputs)
    if not probe.calls:
        raise ValueError(
            f"model {spec.factory}: {type(whole).__name__} has no list of layers to cut; give its "
            "stages by a factory of your own (FILE.py:FUNCTION)"
        )
    notes = _without_idle(whole, probe)
    whole.zero_grad(set_to_none=True)
    why = ""
    for counts, sends_inputs in product(_cuts(spec, probe), (False, True)):
        stages = _stages(whole, probe, inputs, counts)
        for stage in stages:
            stage.sends_inputs = sends_inputs
        if not (found := _difference(stages, inputs, probe.outcome)):
            return [stage.train() for stage in stages], notes
        ends = [probe.calls[end - 1].name for end in accumulate(counts[:-1])]
        why = why or f"cut behind {' and '.join(ends)} {found}"
    raise ValueError(
        f"model {spec.factory}: {type(whole).__name__} {why}; cut it elsewhere (--layers, of "
        f"{len(probe.calls)}), or give its stages by a factory of your own (FILE.py:FUNCTION)"
    )


def _cuts(spec: ModelSpec, probe: Probe) -> Iterator[tuple[int, ...]]:
    """The cut that is asked for; or the even one, and the even one with all of a tower in front."""
    yield even_cut(spec, len(probe.calls))
    lists = [call.name.rpartition(".")[0] for call in probe.calls]
    front = len(lists) - lists.count(lists[-1])
    if front and not isinstance(spec.layers, tuple) and spec.num_stages <= len(lists) - front:
        first, *others = even_cut(spec, len(lists) - front)
        yield (front + first, *others)


def _stages(whole: nn.Module, probe: Probe, inputs: Inputs, counts: Sequence[int]) -> list[HfStage]:
    """The stages of a cut, whose parameters are those of ``whole``."""
    shared = {id(each): each for each in whole.parameters()}
    starts = accumulate(counts, initial=0)
    stages = [
        HfStage(copy.deepcopy(whole, dict(shared)), probe, start, start + count)
        for start, count in zip(starts, counts, strict=False)
    ]
    for stage in stages:
        stage.inputs = {
            name: value.shape
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor) and not value.is_floating_point()
        }
    return stages


@torch.no_grad()
def _difference(stages: Sequence[HfStage], inputs: Inputs, expected: Sequence[torch.Tensor]) -> str:
    """How the stages differ from the uncut model; empty where they give the same logits."""
    given: object = None
    for number, stage in enumerate(stages):
        try:
            with torch.enable_grad():
                given = stage(**inputs) if not number else stage(*tensors_of(given))
        except Exception as error:  # whatever the library's modules raise
            why = (str(error).splitlines() or [""])[0]
            return f"fails in stage {number} ({type(error).__name__}: {why})"
        given = tuple(
            each.detach().requires_grad_(each.requires_grad) for each in tensors_of(given)
        )
    is_same = all(map(torch.equal, tensors_of(given), expected))
    return "" if is_same else "gives other logits than uncut"


def _without_idle(whole: nn.Module, probe: Probe) -> tuple[str, ...]:
    """Leave out what the pass never calls, and freeze what gets no gradient; a line for each."""
    notes, frozen = [], []
    idle = [name for name, times in probe.times.items() if not times]
    idle = [name for name in idle if not any(p.grad is not None for p in _below(whole, name))]
    for name in idle:
        module = whole.get_submodule(name)
        for key in [*module._parameters]:
            module._parameters[key] = None
    if idle:
        notes.append(f"without what words alone never call: {idle[0]} and {len(idle) - 1} more")
    for name, parameter in whole.named_parameters():
        if parameter.requires_grad and parameter.grad is None:
            parameter.requires_grad_(False)
            frozen.append(name)
    if frozen:
        notes.append(f"frozen, since it gets no gradient: {', '.join(frozen[:4])}")
    return tuple(notes)


def _below(whole: nn.Module, name: str) -> Iterator[nn.Parameter]:
    return whole.get_submodule(name).parameters(recurse=False)
