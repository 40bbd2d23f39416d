"""Read what StallCallback and `watch` wrote down of a training process."""
