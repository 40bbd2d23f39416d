"""The capture where Keras trains with JAX or PyTorch, or something unknown."""
