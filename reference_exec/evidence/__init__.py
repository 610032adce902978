"""What a replay showed, beside oracles and predictions."""
