"""`python -m clai` is the command `clai`."""

import sys

from clai.report.cli import main

sys.exit(main())
