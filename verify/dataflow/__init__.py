"""Rule 7: a symbolic run shows what each gradient is the sum of, and from what it was computed.

A training step is right when every F, B, I, W and R runs on what its definition says: the output of
the stage before, for the same microbatch and slice; the key/value states of earlier slices; the
activations of its own forward, on its rank, once; the gradients that later slices and the stage
after it pass back; the parameters of this step. And when the gradient of every stage, as STEP finds
it and as the run leaves it, sums the contribution of each (microbatch, slice) exactly once.

The run works on names of tensors instead of numbers. It is written from these definitions and reads
neither the precedences of the problem nor the tags of messages: a RECV gets what comes first in its
channel, and its consumer finds the wrong name. ``training_step`` says what is read of a problem,
``activations``, ``parameters``, ``gradients`` and ``messages`` hold the definitions, ``runs`` the
order in which actions happen. ``passes`` asks what only several steps together can break, on the
versions and sums of ``model_state``.
"""
