"""``python -m bubbleproof`` is the command ``bubbleproof``."""

from bubbleproof.cli import main

if __name__ == "__main__":
    main()
