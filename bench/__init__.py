"""Side-by-side benchmarks: workloads, one driver per broker, a report."""
