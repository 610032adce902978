"""``estimate`` at the door (``import bubbleproof as bp``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubbleproof.arguments import FilePath, path_text
from bubbleproof.door_calls import door_function

if TYPE_CHECKING:
    from bubbleproof.costs.times.estimation import Estimate


@door_function
def estimate(rows: FilePath, hardware: FilePath) -> list[Estimate]:
    """What iterations would take, in time and memory.

    Parameters
    ----------
    rows
        A CSV file, one iteration a row: a model, how it is cut over cards, the batch
        (``costs.times.job_rows``). No measured column is looked at.
    hardware
        A card with its constants: a file that ``bubbleproof calibrate`` wrote, or a card's name.

    Returns
    -------
    list of Estimate
        ``iteration_ms``, ``allocated_gib`` of the fullest card, and ``stages``, in the rows' order.

    Raises
    ------
    TypeError
        For what is no path.
    ValueError
        In one line, for rows or hardware that are not usable.
    """
    from bubbleproof.costs.times.estimation import estimates
    from bubbleproof.formats.clusters.hardware_toml import read_hardware, read_rows

    by = read_hardware(path_text(hardware, asker="estimate"))
    return estimates(read_rows(path_text(rows, asker="estimate"), measured=False), by)
