"""Measured gains, and the calibration of predicted ones that follows from them."""
