"""What we run in a checkout: makers of pages in docs/, database servers for tests and the bench."""
