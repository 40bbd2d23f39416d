"""What can be known about a training before its first epoch, by trying one batch."""
