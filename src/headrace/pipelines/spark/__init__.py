"""Spark on this machine: its jars, its Java, its session."""
