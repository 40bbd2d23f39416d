"""One file for each finding, by family; registry.py finds them."""
