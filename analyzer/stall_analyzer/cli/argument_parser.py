"""argparse, with one line for a mistake on the command line instead of a screen of usage."""

from __future__ import annotations

import argparse
from typing import NoReturn

from stall_analyzer.errors import UsageError


class ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(UsageError.exit_code, f"{self.prog}: {message} (see {self.prog} --help)\n")
