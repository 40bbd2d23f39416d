"""The data that flows between the stages: frozen dataclasses over numpy columns."""
