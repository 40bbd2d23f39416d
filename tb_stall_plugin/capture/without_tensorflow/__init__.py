"""The capture where Keras trains with JAX or PyTorch, or nobody knows with what."""
