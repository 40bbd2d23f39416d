"""The capture for training with JAX, PyTorch or anything other than TensorFlow."""
