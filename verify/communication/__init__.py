"""Rule 6: the programs of ranks, their messages, transfers, collectives and exchanges."""
