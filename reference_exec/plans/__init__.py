"""From a verified schedule to what each rank has to run, and what that promises."""
