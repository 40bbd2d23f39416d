"""What detectors look at: one run's measures, each worked out when first asked for."""

from stall_analyzer.signals.run import Signals

__all__ = ["Signals"]
