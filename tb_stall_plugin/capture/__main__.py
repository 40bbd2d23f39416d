"""`python -m tb_stall_plugin.capture`: what `stall-analyze capture`, `check`, `try`
and `attach` run."""

import sys

from tb_stall_plugin.capture import check_command, command
from tb_stall_plugin.capture.attach import attach_command
from tb_stall_plugin.capture.tried import try_command

if sys.argv[1:2] == ["check"]:
    sys.exit(check_command.main(sys.argv[2:]))
if sys.argv[1:2] == ["try"]:
    sys.exit(try_command.main(sys.argv[2:]))
if sys.argv[1:2] == ["attach"]:
    sys.exit(attach_command.main(sys.argv[2:]))
sys.exit(command.main())
