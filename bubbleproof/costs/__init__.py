"""Models as numbers: parameters, FLOPs, saved bytes and state of transformers.

>>> from bubbleproof.costs import Deployment, known_model, model_costs
>>> found = model_costs(known_model("llama-2-7b").model, Deployment(sequence=4096))
>>> found.parameters.total
6738415616
"""

from bubbleproof.costs.accounting import ACCOUNTINGS, PRECISIONS, Accounting, Precision
from bubbleproof.costs.deployment import SCOPES, Deployment
from bubbleproof.costs.flops import Flops, operation_flops
from bubbleproof.costs.known_models import (
    FAMILIES,
    KnownModel,
    known_model,
    known_models,
    transformer,
)
from bubbleproof.costs.model_costs import (
    ModelCosts,
    ParameterCounts,
    StageCosts,
    head_flops,
    layer_flops,
    model_costs,
    parameters,
)
from bubbleproof.costs.operations import LayerOperation, layer_operations
from bubbleproof.costs.saved_bytes import layer_saved, message_bytes
from bubbleproof.costs.state import bytes_per_parameter, stage_weights, state_bytes
from bubbleproof.costs.transformer import Transformer
from bubbleproof.costs.weights import Weights

__all__ = [
    "ACCOUNTINGS",
    "FAMILIES",
    "PRECISIONS",
    "SCOPES",
    "Accounting",
    "Deployment",
    "Flops",
    "KnownModel",
    "LayerOperation",
    "ModelCosts",
    "ParameterCounts",
    "Precision",
    "StageCosts",
    "Transformer",
    "Weights",
    "bytes_per_parameter",
    "head_flops",
    "known_model",
    "known_models",
    "layer_flops",
    "layer_operations",
    "layer_saved",
    "message_bytes",
    "model_costs",
    "operation_flops",
    "parameters",
    "stage_weights",
    "state_bytes",
    "transformer",
]
