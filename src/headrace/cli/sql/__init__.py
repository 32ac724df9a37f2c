"""`headrace sql`: queries over topics."""
