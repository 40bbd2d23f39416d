"""The first epoch as lanes of intervals and curves, and windows of it for a screen."""

from stall_analyzer.chart.lanes import charts_of
from stall_analyzer.chart.window import search, timeline

__all__ = ["charts_of", "search", "timeline"]
