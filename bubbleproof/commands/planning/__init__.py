"""Commands that make, run or judge a plan."""
