"""What the training process records about itself: StallCallback and watch."""
