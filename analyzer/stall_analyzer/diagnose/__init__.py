"""Run the detectors, add up what the changes save, and judge."""
