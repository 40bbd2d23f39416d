"""The first epoch as lanes of intervals and curves, and windows of it for a screen."""
