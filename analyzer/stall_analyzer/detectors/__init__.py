"""One file for each finding, by family; registry.py lists them."""
