"""What the command does, one file per subcommand; ``cli`` only reads the command line.

Each ``run_*`` function returns the exit status: 0 all holds, 1 a violation or a refuted
expectation, 3 undecided, 130 interrupted. Unusable input raises ``ValueError``, which
``last_resort`` turns into one line and status 2.
"""
