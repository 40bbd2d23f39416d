"""What the capture itself missed or cost."""
