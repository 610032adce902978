"""What the frameworks themselves answer, asked of their wheels and recorded beside this file."""
