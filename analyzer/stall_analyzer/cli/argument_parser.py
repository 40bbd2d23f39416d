"""argparse, with one line for a mistake on the command line instead of a screenful of usage."""

from __future__ import annotations

import argparse
from typing import NoReturn

from stall_analyzer.errors import UsageError


class ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        help_option = "--help-all" if "--help-all" in self._option_string_actions else "--help"
        where = f"(see {self.prog} {help_option})"
        self.exit(UsageError.exit_code, f"{self.prog}: {message} {where}\n")
