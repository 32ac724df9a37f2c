"""Java on this machine: which one, and the pinned jars that run on it."""
