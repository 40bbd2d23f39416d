"""`python -m tb_stall_plugin.capture`: what `stall-analyze capture` and `check` run."""

import sys

from tb_stall_plugin.capture import check_command, command

if sys.argv[1:2] == ["check"]:
    sys.exit(check_command.main(sys.argv[2:]))
sys.exit(command.main())
