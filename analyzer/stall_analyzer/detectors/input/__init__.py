"""Input: the next batch was not there."""
