"""One file per broker: how it is started for a measurement."""
