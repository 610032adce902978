"""Engines in processes of their own: with a hard deadline, a memory limit, and a reason when lost.

``call`` is the caller's side: it runs a function, found by its name, in a process that ``served``
is the inside of. ``loss`` says in words what became of a process that gave no answer, and
``cpsat_call`` is CP-SAT's part, which needs nothing but OR-tools and so starts in a tenth of the
time that the solvers take. Importing this loads no engine.
"""
