"""Groups as the broker keeps them: their log, their loading, their timers."""
