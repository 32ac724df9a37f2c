"""`headrace kafka`: clusters of real Apache Kafka on this machine."""
