"""Looks from outside at a process that was started without a capture."""
