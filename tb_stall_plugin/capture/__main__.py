"""`python -m tb_stall_plugin.capture`: what `stall-analyze capture` runs."""

import sys

from tb_stall_plugin.capture.command import main

sys.exit(main())
