"""The broker: connections, dispatch, and one handler file per Kafka API."""
