"""The part of the capture that works inside the training, with TensorFlow."""
