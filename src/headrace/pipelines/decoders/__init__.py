"""How bytes become fields: one module a format."""
