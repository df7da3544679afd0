"""``python -m graphfield`` is the command line."""

import sys

from graphfield.cli import main

if __name__ == "__main__":
    sys.exit(main())
