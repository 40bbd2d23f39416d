"""The TensorBoard tab of Stall.

Imports nothing: TensorBoard imports this package when it starts, and does not start if that fails.
"""
