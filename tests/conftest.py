"""Settings all tests share."""

from hypothesis import settings

# No test times performance: a slow machine is not a failure.
settings.register_profile("headrace", deadline=None, print_blob=True)
settings.load_profile("headrace")
