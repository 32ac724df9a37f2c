"""Kafka's wire format: framing, versions, message codec, hot-path encoders. No I/O."""
