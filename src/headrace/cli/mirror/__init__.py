"""`headrace mirror`: from one bus to another."""
