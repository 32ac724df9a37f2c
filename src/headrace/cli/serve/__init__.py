"""`headrace serve`: the broker as a process."""
