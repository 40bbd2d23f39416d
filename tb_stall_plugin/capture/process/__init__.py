"""Watches over the process, without TensorFlow, which may be what hangs."""
