"""What ``torchrun --nproc-per-node RANKS -m bubbleproof.reference_exec SCHEDULE [options]`` runs.

It is ``bubbleproof replay --torchrun`` with the same options: every process is one rank.
"""

from __future__ import annotations

import os
import sys

from bubbleproof.__main__ import main

if __name__ == "__main__":
    sys.argv[1:1] = ["replay", "--torchrun"]
    try:
        main()
    except SystemExit as ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 1)  # gloo's threads may hang
