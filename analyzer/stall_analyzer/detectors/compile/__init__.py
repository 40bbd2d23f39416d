"""Compile: code was being made."""
