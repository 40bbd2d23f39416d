"""What detectors look at: one run's measurements, each computed when first needed."""
