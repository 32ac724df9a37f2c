"""The fail-over proof: a cluster under load, hurt on purpose, and the books balanced at the end.

`run_drill(cluster, Plan(...))` in run.py does it all and returns a DrillReport.
"""
