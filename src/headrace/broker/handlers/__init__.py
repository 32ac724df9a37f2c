"""One file per Kafka API: translate, delegate, translate."""
