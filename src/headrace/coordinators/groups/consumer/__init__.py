"""Groups of the new protocol (KIP-848): the broker assigns, members reconcile one by one."""
