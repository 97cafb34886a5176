"""`python -m pocketmq` is the `pocketmq` command."""

import sys

from pocketmq.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
