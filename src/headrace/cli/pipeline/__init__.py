"""`headrace pipeline`: pipelines on Spark, their runs and their dead letters."""
