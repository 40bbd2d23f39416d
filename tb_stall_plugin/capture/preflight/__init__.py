"""What can be known about a training run before its first epoch, by trying one batch."""
