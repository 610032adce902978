"""Which chunks of a rank are recomputed where the papers say R per cent.

A rank's v chunks are alike, so R per cent of its layers are k = R v / 100 of them, and R = 50 of
two chunks is one. Per cents are whole numbers: R stands for the k whose share it is, rounded
(R = 33 of three chunks is one, R = 67 is two).
"""

from __future__ import annotations


def share_of_chunks(recomputed: int, chunks: int) -> int:
    """Per cent of ``chunks`` that ``recomputed`` are, rounded, halves up.

    Parameters
    ----------
    recomputed
        How many are.
    chunks
        Of how many, 1 or more.
    """
    return (200 * recomputed + chunks) // (2 * chunks)


def chunks_of_share(share: int, chunks: int) -> int:
    """k: how many of ``chunks`` are ``share`` per cent.

    Parameters
    ----------
    share
        Per cent, from 0 to 100.
    chunks
        Of how many, 1 or more.

    Raises
    ------
    ValueError
        Where no number of them is that share.

    Examples
    --------
    >>> chunks_of_share(67, 3)
    2
    """
    nearest = (2 * share * chunks + 100) // 200
    if share_of_chunks(nearest, chunks) != share:
        shares = [share_of_chunks(k, chunks) for k in range(chunks + 1)]
        near = sorted(shares, key=lambda one: abs(one - share))[:2]
        raise ValueError(
            f"R={share} per cent is no whole number of {chunks} chunks; "
            f"use R={' or R='.join(map(str, sorted(near)))}"
        )
    return nearest
