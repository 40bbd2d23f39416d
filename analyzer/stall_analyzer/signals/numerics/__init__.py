"""Numerics: the steps ran and taught the model nothing."""
