"""Models as numbers: parameters, FLOPs, saved bytes and state of transformers.

>>> from bubbleproof.costs import Deployment, known_model, model_costs
>>> found = model_costs(known_model("llama-2-7b").model, Deployment(sequence=4096))
>>> found.parameters.total
6738415616
"""

from bubbleproof.costs.deployment import Deployment
from bubbleproof.costs.known_models import KnownModel, known_model, known_models, transformer
from bubbleproof.costs.model_costs import ModelCosts, layer_flops, model_costs, parameters
from bubbleproof.costs.operations import layer_operations
from bubbleproof.costs.saved_bytes import layer_saved
from bubbleproof.costs.transformer import Transformer

__all__ = [
    "Deployment",
    "KnownModel",
    "ModelCosts",
    "Transformer",
    "known_model",
    "known_models",
    "layer_flops",
    "layer_operations",
    "layer_saved",
    "model_costs",
    "parameters",
    "transformer",
]
