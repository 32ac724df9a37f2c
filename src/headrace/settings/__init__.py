"""Every setting of Kafka's by name: catalogue, values, sources, description."""
