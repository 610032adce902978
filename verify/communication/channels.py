"""Channels: what one rank sends to another, which arrives in the order in which it was sent."""

from __future__ import annotations

from collections.abc import Iterator

from bubbleproof.theory.model.actions import ActionTable
from bubbleproof.verify.explain.programs import ProgramFault

Channels = dict[tuple[int, int], list[tuple[int, int]]]  # (source, target): rows of (send, receive)


def crossed(channels: Channels, actions: ActionTable, noun: str) -> Iterator[ProgramFault]:
    """Channels whose k-th send and k-th receive are not of one message, each with its first k.

    ``actions`` are those of all rows; ``noun`` says what is sent.

    Parameters
    ----------
    actions
        The action of each row.
    noun
        What is sent, such as ``message``.

    Returns
    -------
    Iterator[ProgramFault]
        A sentence and the two rows.
    """
    for (source, target), ends in channels.items():
        sent, received = sorted(ends), sorted(ends, key=lambda rows: rows[1])
        for number, (out, into) in enumerate(zip(sent, received, strict=True)):
            if out != into:
                sentence = (
                    f"{noun} {number} from rank {source} to rank {target} is sent as "
                    f"{actions[out[0]]} but received as {actions[into[1]]}"
                )
                yield sentence, [out[0], into[1]]
                break
