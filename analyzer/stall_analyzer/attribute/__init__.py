"""Divide the window among causes: every picosecond in exactly one."""

from stall_analyzer.attribute.ledger import attribute

__all__ = ["attribute"]
