"""Times of a training iteration from a model, a card and how the model is cut over cards.

What a card is stands in ``cards``, what is fitted to measured iterations in ``constants``, the
formulas in ``work`` (what is computed and moved) and ``kernels`` (how long that takes), the
iteration in ``iteration``: the makespan of our schedule, with the times of this package.

The interface for planners is ``kernel_times`` (``kernels``) and ``iteration_plan`` (``iteration``).
Times are floats in milliseconds, and estimates: none of them enters a claim.
"""
