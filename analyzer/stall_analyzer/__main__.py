"""`python -m stall_analyzer`: the same as `stall-analyze`."""

import sys

from stall_analyzer.cli.main import main

sys.exit(main())
