"""How long a hostile or heavy client keeps an innocent one waiting, on headrace and on Kafka."""
