"""What can be known of a training before its first epoch: one batch through the model, on trial."""
