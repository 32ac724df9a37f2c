"""Side-by-side benchmarks of the pipelines: the same rows through every way there is."""
