"""One bad byte, disk or neighbor never costs more than itself: faults put in from outside."""
