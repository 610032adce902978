"""A program that has a pool of three processes: rank 1 hangs, rank 0 waits for it, one is idle."""

from __future__ import annotations

import sys

from bubbleproof.reference_exec.drivers.gloo import GlooPool
from proofs_tests.reference_exec import faulty
from proofs_tests.reference_exec.cases import family_case


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    with GlooPool(3, worker=faulty.sleeps) as pool:
        pool.run(family_case("1f1b", p=2, m=4).plan(), timeout=600, progress=tell)


if __name__ == "__main__":
    main()
