"""Batches: what a rank posts without a computation or a wait between, as one group call.

Rows are those of a program; each batch lists its own in order. Batches of several ranks *meet*
where a message goes from one to the other, and so do those that meet a third.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def batches_of(is_transfer: Sequence[bool], rank: Sequence[int]) -> list[list[int]]:
    """The longest runs of SENDs and RECVs of each rank.

    Parameters
    ----------
    is_transfer
        Of each row of the programs whether it is a SEND or a RECV.
    rank
        The rank of each row.

    Returns
    -------
    list[list[int]]
        Rows of each run, in program order.
    """
    found: list[list[int]] = []
    current: dict[int, list[int]] = {}
    for row, r in enumerate(rank):
        if not is_transfer[row]:
            current.pop(r, None)
        elif r in current:
            current[r].append(row)
        else:
            found.append([row])
            current[r] = found[-1]
    return found


def met_batches(
    batches: Sequence[Sequence[int]], transfers: Iterable[tuple[int, int]]
) -> dict[int, int]:
    """Each row of a batch -> the least row of all batches that it meets.

    Parameters
    ----------
    batches
        Rows of each batch.
    transfers
        Rows of the SEND and the RECV of each message.
    """
    parent = {row: batch[0] for batch in batches for row in batch}

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    for send, recv in transfers:
        low, high = sorted((root(send), root(recv)))
        parent[high] = low
    return {row: root(row) for row in parent}
