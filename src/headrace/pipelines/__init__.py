"""The data pipelines: topics to lake, tables and back, on Spark through PySpark.

What a pipeline's module imports is here; `headrace.pipelines.spark` opens sessions.
"""
