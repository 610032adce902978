"""Search over what a pipeline leaves open: variants, and schedules of the best."""
