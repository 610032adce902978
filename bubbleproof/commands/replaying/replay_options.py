"""The options of ``replay``: the run, the model (as in ``profile``), its training, the messages.

The options of ``profile``: the pipeline, how it is measured, and the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, ClassVar

from typer import Option

from bubbleproof.commands.options.option_groups import OptionGroup, seconds_option
from bubbleproof.commands.options.shared_options import (
    Detail,
    Dialect,
    Json,
    Loudness,
    Words,
)
from bubbleproof.commands.options.targets import Target
from bubbleproof.formats.format_table import Holds, endings

if TYPE_CHECKING:
    from bubbleproof.reference_exec.models.model_spec import ModelSpec
    from bubbleproof.reference_exec.plans.run_options import ReplayOptions
    from bubbleproof.reference_exec.plans.training import Training
    from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels

HEADS = ("heads", "kv_heads")
WITHOUT = {  # of each kind of model the sizes that it has not
    "mlp": HEADS,
    "transformer": ("kv_heads",),
    "hf": ("hidden", *HEADS, "vocabulary", "tied"),
    "own": ("hidden", "layers", *HEADS, "sequence", "batch", "vocabulary", "tied"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(OptionGroup):
    """What runs the ranks; None where the command that is given has a default of its own."""

    HEADING: ClassVar[str] = "Options"

    backend: Annotated[
        str | None,
        Option(help="virtual (default), gloo or torch-runtime; under torchrun gloo or nccl."),
    ] = None
    device: Annotated[str | None, Option(help="cpu, or cuda: all ranks of virtual on one GPU.")] = (
        None
    )
    seed: Annotated[int, Option(help="Picks the interleaving (virtual).")] = 0
    unsafe: Annotated[bool, Option(help="Run what is not verified too.")] = False
    no_count_bytes: Annotated[bool, Option(help="Leave the account of live bytes out.")] = False
    no_count_work: Annotated[bool, Option(help="Leave the account of what is computed out.")] = (
        False
    )
    dialect: Dialect = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions(OptionGroup):
    """The model to train and the shape of what it is given; see ``ModelSpec``."""

    HEADING: ClassVar[str] = "Model"

    model: Annotated[
        str | None,
        Option(help="mlp (default), transformer, llama, FILE.py:FUNCTION, or hf:CONFIG.json."),
    ] = None
    hidden: Annotated[int, Option(help="Hidden size.")] = 8
    layers: Annotated[
        str, Option(help="Layers per stage: one number, one per stage as 2,3,3,2, or FILE.layout.")
    ] = "1"
    heads: Annotated[int, Option(help="Attention heads.")] = 2
    kv_heads: Annotated[int, Option(help="Heads of keys and values (llama).")] = 1
    sequence: Annotated[int, Option(help="Tokens of a sample.")] = 4
    batch: Annotated[int, Option(help="Samples of a microbatch.")] = 2
    vocabulary: Annotated[
        int, Option(help="Words to embed and to score; without, activations.")
    ] = 0
    tied: Annotated[bool, Option(help="Embedding and head share one matrix.")] = False
    dtype: Annotated[
        str | None,
        Option(
            help="float64 (default), float32, bfloat16 or float16; your own model of 16 bits runs "
            "in its type."
        ),
    ] = None
    model_seed: Annotated[
        int, Option(help="Of weights, data and draws; of your own model draws alone.")
    ] = 0

    def require_meaning(self) -> None:
        """Raise ``ValueError`` for a size that the model does not have."""
        model = self.model or "mlp"
        file = "hf" if model.startswith("hf:") else "own"
        kind = file if ":" in model else model
        about = "a model of your own" if kind == "own" else f"--model {model}"
        self.leave_out(about, *WITHOUT.get(kind, ()))

    def spec(self) -> ModelSpec:
        """The model: a kind, or a factory by its colon. Raises ``ValueError``."""
        from bubbleproof.reference_exec.models.model_spec import ModelSpec

        sizes = asdict(self)
        model, layers = sizes.pop("model") or "mlp", parsed_layers(sizes.pop("layers"))
        seed = sizes.pop("model_seed")
        kind, factory = ("own", model) if ":" in model else (model, "")
        sizes["keeps_type"] = kind == "own" and self.dtype is None
        sizes["dtype"] = self.dtype or "float64"
        return ModelSpec(kind=kind, factory=factory, layers=layers, seed=seed, **sizes)


def parsed_layers(text: str) -> int | tuple[int, ...]:
    """The layers of every stage, or of each: ``"2"``, ``"2,3,3,2"`` or a file with a layout.

    Raises ``ValueError`` for anything but whole numbers.
    """
    if text.endswith(endings(Holds.LAYOUT)):
        from bubbleproof.formats.layout_string import read_layout

        return read_layout(text).layers
    try:
        counts = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"replay layers must be a number or one per stage such as 2,3,3,2, got {text!r}"
        ) from None
    return counts[0] if len(counts) == 1 else counts


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingOptions(OptionGroup):
    """How many steps are taken, by which rule, and on how many replicas."""

    HEADING: ClassVar[str] = "Training"

    steps: Annotated[int | None, Option(help="Optimizer steps; without, gradients alone.")] = None
    optimizer: Annotated[str | None, Option(help="sgd, momentum or adam.")] = None
    learning_rate: Annotated[float | None, Option(help="Of the optimizer.")] = None
    barrier: Annotated[bool, Option(help="Let all ranks end a pass before any steps.")] = False
    clip: Annotated[float | None, Option(help="Most that the global norm may be; a barrier.")] = (
        None
    )
    accumulate: Annotated[int | None, Option(help="Passes that add up to a step's gradient.")] = (
        None
    )
    loss_scale: Annotated[
        str | None, Option(help="A power of two, or dynamic: of losses in float16; a barrier.")
    ] = None
    data_parallel: Annotated[int, Option(help="Replicas, each on microbatches of its own.")] = 1
    zero: Annotated[
        str | None, Option(help="ZeRO level, with others by parameter name: 2, or 3,norm=1.")
    ] = None

    def asked(self) -> Training | None:
        """The training that is asked for, None where nothing is. Raises ``ValueError``."""
        from bubbleproof.reference_exec.plans.training import LossScale, Training

        counts = (self.optimizer, self.steps, self.learning_rate, self.accumulate)
        collective = (self.clip, self.loss_scale)
        if not self.barrier and all(each is None for each in (*counts, *collective)):
            return None
        return Training(
            optimizer="sgd" if self.optimizer is None else self.optimizer,
            steps=1 if self.steps is None else self.steps,
            learning_rate=self.learning_rate,
            has_barrier=self.barrier or collective != (None, None),
            clip=self.clip,
            accumulate=1 if self.accumulate is None else self.accumulate,
            loss_scale=None if self.loss_scale is None else LossScale.parse(self.loss_scale),
        )

    def levels(self) -> ZeroLevels | None:
        """The ZeRO levels that are asked for, None where none are. Raises ``ValueError``."""
        from bubbleproof.reference_exec.plans.zero_levels import ZeroLevels

        return None if self.zero is None else ZeroLevels.parse(self.zero)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationOptions(OptionGroup):
    """How the ranks of a replay are joined, and what is assumed of it."""

    HEADING: ClassVar[str] = "Communication"

    comm: Annotated[
        str | None, Option(help="Semantics to verify under (over NCCL: what it keeps there).")
    ] = None
    timeout: Annotated[float, seconds_option("Time the ranks may take (gloo)")] = 60.0
    torchrun: Annotated[bool, Option(help="This process is one rank, started by torchrun.")] = False
    share_gpu: Annotated[
        bool, Option(help="Ranks under torchrun may share a GPU over NCCL, from its 2.30 on.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutput(OptionGroup):
    """Where the evidence of a replay goes."""

    HEADING: ClassVar[str] = "Output"

    output: Annotated[
        list[str] | None,
        Option("-o", "--output", help="x.html, x.json or x.perfetto.json; repeatable."),
        Target.FILE,
    ] = None
    explain: Annotated[
        bool, Option("--explain", help="Print what is not counted and not checked too.")
    ] = False
    json: Json = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRequest(OptionGroup):
    """A schedule to replay, and every option in its group."""

    schedule: Words
    run: RunOptions = RunOptions()
    model: ModelOptions = ModelOptions()
    training: TrainingOptions = TrainingOptions()
    communication: CommunicationOptions = CommunicationOptions()
    output: ReplayOutput = ReplayOutput()
    detail: Detail = field(default_factory=Detail)

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a model, a training or levels that nothing can mean."""
        self.model.spec()
        self.training.asked()
        self.training.levels()

    def options(self, backend: str) -> ReplayOptions:
        """How to replay, on ``backend`` unless another is asked for. Raises ``ValueError``."""
        from bubbleproof.reference_exec.plans.run_options import ReplayOptions

        return ReplayOptions(
            backend=self.run.backend or backend,
            device=self.run.device or "cpu",
            seed=self.run.seed,
            semantics=self.communication.comm,
            timeout=self.communication.timeout,
            unsafe=self.run.unsafe,
            training=self.training.asked(),
            data_parallel=self.training.data_parallel,
            zero=self.training.levels(),
            count_bytes=not self.run.no_count_bytes,
            count_work=not self.run.no_count_work,
        )

    @property
    def is_sharded(self) -> bool:
        """Whether replicas or ZeRO levels are asked for."""
        return self.training.data_parallel != 1 or self.training.zero is not None

    @property
    def targets(self) -> Sequence[str]:
        """The files to write (``replay_files``)."""
        return self.output.output or ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions(OptionGroup):
    """The pipeline of the problem that is written."""

    HEADING: ClassVar[str] = "Pipeline"

    ranks: Annotated[int, Option(help="Ranks of the pipeline.")]
    microbatches: Annotated[int, Option(help="Microbatches of a step.")]
    chunks: Annotated[int, Option(help="Stages per rank.")] = 1
    placement: Annotated[str, Option(help="loop or wave.")] = "loop"
    whole: Annotated[bool, Option(help="Whole backwards, not I and W.")] = False
    latency: Annotated[int, Option(help="Ticks of a message; not measured.")] = 0
    capacity: Annotated[str | None, Option(help='Memory of each rank such as "80 GiB".')] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementOptions(OptionGroup):
    """How its stages are measured; ``tick`` None is one that fits the times."""

    HEADING: ClassVar[str] = "Measurement"

    device: Annotated[str, Option(help="cpu or cuda.")] = "cpu"
    warmup: Annotated[int, Option(help="Rounds that are not counted.")] = 3
    repeats: Annotated[int, Option(help="Rounds whose median is taken.")] = 10
    tick: Annotated[
        str | None, Option(help="Length of a tick such as 10us (default: one that fits).")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRequest(OptionGroup):
    """The model, the pipeline, how to measure it, and where the problem goes."""

    output: Annotated[
        str, Option("-o", "--output", help="The problem file to write (.toml)."), Target.FILE
    ]
    pipeline: PipelineOptions
    measurement: MeasurementOptions
    model: ModelOptions
    loudness: Loudness = field(default_factory=Loudness)
    json: Json = False
