"""``verify`` of many schedules at once, and its answers as JUnit's XML and as SARIF."""
