"""What detectors look at: one run's measures, each worked out when first asked for."""
