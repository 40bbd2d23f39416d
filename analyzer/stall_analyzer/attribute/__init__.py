"""Divide the window among causes: every picosecond in exactly one."""
