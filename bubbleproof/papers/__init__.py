"""What the literature says of schedules, decided: claims and theorems."""
