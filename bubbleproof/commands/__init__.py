"""What the command does, one file per subcommand; ``cli`` only reads the command line.

Each ``run_*`` function returns the exit status: 0 all holds, 1 a violation or a refuted
expectation, 3 undecided. Unusable input raises ``ValueError``, which ``cli`` turns into one line
and status 2.
"""
