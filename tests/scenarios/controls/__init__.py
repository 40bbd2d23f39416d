"""What input takes from the steps, against the same training on one ready batch."""
