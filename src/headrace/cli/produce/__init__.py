"""`headrace produce`: lines and files to messages."""
