"""`headrace top`: rates of topics and groups."""
