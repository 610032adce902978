"""What the files in the folder of a plan are called; ``plan_folder`` says what they hold."""

PLAN_NAME, SCHEDULE_NAME, PROBLEM_NAME = "plan.json", "schedule.json", "problem.toml"
