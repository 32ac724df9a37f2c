"""`make demo`: a sensor feed, archived to a lake and kept as a table by Spark, and compared."""
