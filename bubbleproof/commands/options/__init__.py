"""The options of commands: groups, those that several take, and what is written."""
