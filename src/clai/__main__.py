"""`python -m clai` is the command `clai`."""

import sys

from clai.cli import main

sys.exit(main())
