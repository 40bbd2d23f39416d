"""Memory: it was short or slow."""
