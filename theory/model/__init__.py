"""What a schedule is: actions, problems, schedules, memory and measures. Nothing else."""
