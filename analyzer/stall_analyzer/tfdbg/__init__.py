"""Read the dumps of TensorFlow's debugger."""
