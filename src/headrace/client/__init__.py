"""The one door to any bus, embedded or Apache Kafka: where it is, how to log on, what it says."""
