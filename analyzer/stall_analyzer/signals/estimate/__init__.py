"""The whole first epoch as it probably was, where only parts of it were traced."""
