"""Mutants of the checker, and the tests that kill them: ``python -m proofs_tests.mutate``.

A mutant is one small change inside a function of ``verify/`` or of what it imports from
``theory/``: a comparison, an operator, a number, a condition, a statement left out. Each is tried
in a forked process, in memory: no file is edited. The tests that run the changed statement are
tried on it, those of its own file first, until one fails (killed). What survives is alive, unless
``same`` says why it means the same.
"""
