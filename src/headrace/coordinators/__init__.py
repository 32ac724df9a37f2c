"""Decisions without I/O: what a coordinator answers, and what it wants written."""
