"""What of a layer is computed again in its backward, by scope: the words of frameworks.

A scope is one of these, or several with "+" between them:

- ``none``, ``full``: nothing; all of the layer, of which its input stays;
- ``attention``: the attention itself, without what it makes; Megatron-LM's ``core_attn``;
- Megatron-LM's other ``--recompute-modules``: ``layernorm`` (those before the attention and the
  block), ``mla_up_proj`` (of latent attention, with its norms), ``moe_act`` and ``mlp`` (a
  mixture's activation; a block without experts), ``moe`` and ``shared_experts`` (whole blocks) and
  ``gdn_norm_out`` (what a gated delta net puts out). What is recomputed leaves its input and, but
  for ``mlp``, ``moe`` and ``shared_experts``, nothing else;
- ``norm+act``: ``layernorm`` and ``moe_act``;
- ``op``: torch's selective checkpoint as torchtitan uses it: the layer's input stays, of its
  linears every other, from the first on, without the router, and what the attention makes.

A head that a module for further tokens has is not computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from bubbleproof.costs.operations import layer_operations
from bubbleproof.costs.transformer import Transformer

SCOPES = ("none", "attention", "full")
OPERATIONS = ("norm+act", "op")
_ACTIVATION = ("silu", "product", "gelu")
_SHARED = tuple(f"shared {name}" for name in ("rate", "up", "gate", "silu", "product", "gelu"))
_MIXTURE = ("router", "sort", "up", "gate", *_ACTIVATION, "down")
# The operations of each module, and the layers that have it.
MODULES: dict[str, tuple[tuple[str, ...], Callable[[Transformer], bool]]] = {
    "core_attn": (("attention",), lambda kind: kind.mixer is None),
    "layernorm": (("norm", "norm 1", "norm 2"), lambda kind: kind.norms < 4),
    "mla_up_proj": (
        ("query norm", "key-value norm", "query", "key-value"), lambda kind: kind.kv_rank > 0
    ),
    "moe_act": (_ACTIVATION, lambda kind: kind.experts > 0),
    "mlp": (("up", "gate", *_ACTIVATION), lambda kind: kind.experts == 0),
    "moe": ((*_MIXTURE, *_SHARED), lambda kind: kind.experts > 0),
    "shared_experts": (_SHARED, lambda kind: kind.experts > 0),
    "gdn_norm_out": (("gated output",), lambda kind: kind.mixer is not None),
}  # fmt: skip


def words_of(scope: str) -> tuple[str, ...]:
    """The modules of a scope; a name that stands alone is itself.

    Parameters
    ----------
    scope
        As the module's text has it.

    Raises
    ------
    ValueError
        For a name that is none.

    Examples
    --------
    >>> words_of("norm+act"), words_of("attention"), words_of("mlp+core_attn")
    (('layernorm', 'moe_act'), ('core_attn',), ('mlp', 'core_attn'))
    """
    if scope in ("none", "full", "op"):
        return (scope,)
    named = {"attention": "core_attn", "norm+act": "layernorm+moe_act"}.get(scope, scope)
    words = tuple(named.split("+"))
    if not set(words) <= set(MODULES) or len(set(words)) < len(words):
        raise ValueError(
            f"scope must be one of {', '.join((*SCOPES, *OPERATIONS))}, or with "
            f"+ between them of {', '.join(MODULES)}, got {scope!r}"
        )
    return words


@lru_cache(maxsize=1024)
def made_again(model: Transformer, scope: str) -> frozenset[str]:
    """The operations of a layer that are computed again, by name; of the attention itself what it
    makes stays all the same, but under ``full``.

    Parameters
    ----------
    scope
        As ``words_of`` takes it.
    """
    operations = [each for each in layer_operations(model) if not each.shared]
    words = words_of(scope)
    if words == ("full",):
        return frozenset(each.name for each in operations)
    if words == ("op",):
        linears = [o.name for o in operations if o.weights and o.name != "router"]
        kept = {*linears[::2], *(each.name for each in operations if each.scores)}
        return frozenset(each.name for each in operations) - kept
    parts = [MODULES[word] for word in words if word != "none"]
    names = {name for own, has in parts if has(model) for name in own}
    if "layernorm" in words and model.norms > 3:  # those behind the blocks stay
        names |= {"norm 1", "norm 3"}
    return frozenset(each.name for each in operations if each.name in names)
