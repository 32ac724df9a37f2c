"""Append-only partition logs on disk, in Kafka's own files."""
