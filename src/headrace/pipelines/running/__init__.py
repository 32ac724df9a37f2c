"""A pipeline in motion: its batches, its checkpoint, its place among the runs of this machine."""
