"""Jobs of several workers on this machine, in which one is made late, killed or never started."""
