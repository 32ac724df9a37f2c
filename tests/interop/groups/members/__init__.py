"""Programs that are one member of a group each; run as processes, so that they can be killed."""
