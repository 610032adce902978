"""What one rank does with its program, on any device and over any transport."""
