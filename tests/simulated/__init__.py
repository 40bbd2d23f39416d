"""Traces of accelerators from a timeline whose answer is known: there was no GPU to measure on."""
