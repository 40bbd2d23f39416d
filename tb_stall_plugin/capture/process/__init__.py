"""What watches over the process and works without TensorFlow: that may be what hangs."""
