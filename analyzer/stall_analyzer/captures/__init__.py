"""Read what StallCallback and `watch` recorded of a training process."""
