"""A second opinion: our figures of device traces beside XProf's of the same files."""
