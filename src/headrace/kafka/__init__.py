"""Real Apache Kafka on this machine: its jars, its nodes, its tools."""
