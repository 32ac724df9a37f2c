"""`headrace consume`: messages to stdout."""
