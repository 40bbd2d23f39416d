"""How a run ended, or why it does not continue."""
