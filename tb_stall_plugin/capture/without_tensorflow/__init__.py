"""The capture for trainings with JAX, PyTorch or anything other than TensorFlow."""
