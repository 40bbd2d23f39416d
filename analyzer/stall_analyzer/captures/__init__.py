"""Read what StallCallback and `watch` recorded about a training process."""
