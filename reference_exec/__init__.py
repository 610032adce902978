"""Runs verified schedules on torch and compares gradients and peak bytes with what was promised.

``replaying.replay(pipeline, schedule, models.model_spec.ModelSpec(...))`` gives an
``evidence.replay_report.ReplayReport``. Each part imports only those before it:

    broken, saved, bits, flop_count
                    what goes wrong; the account of live bytes; bits; operations
    models          the models that are trained, and their bytes in closed form
    plans           from a verified schedule to what each rank has to run, and what that promises
    runtime         one rank: its computations, moves, collectives and steps, on any device
    evidence        oracles, and what a replay showed beside them
    drivers         ranks together: virtual, gloo, torchrun with gloo or NCCL
    replaying       all of it, in one call
    pytorch         the second executor, PyTorch's own pipeline runtime

What is known without running (``models.model_spec``, ``models.footprint``, ``plans.replay_plan``,
``evidence.replay_report``) loads no torch.
"""

if __name__ == "reference_exec":  # imported from the top of a checkout
    raise ImportError("import bubbleproof.reference_exec: reference_exec/ is one with it")
