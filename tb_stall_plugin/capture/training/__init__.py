"""What runs inside the training, with TensorFlow."""
