"""`python -m tb_stall_plugin.capture`: what `stall-analyze capture`, `check` and `attach` run."""

import sys

from tb_stall_plugin.capture import check_command, command
from tb_stall_plugin.capture.attach import attach_command

if sys.argv[1:2] == ["check"]:
    sys.exit(check_command.main(sys.argv[2:]))
if sys.argv[1:2] == ["attach"]:
    sys.exit(attach_command.main(sys.argv[2:]))
sys.exit(command.main())
