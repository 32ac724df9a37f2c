"""The exit codes of all commands."""

EXIT_FAILED = 1  # it was tried and did not work, or damage was found
EXIT_USAGE = 2  # the command line or the configuration cannot be right
EXIT_INTERRUPTED = 130  # what shells make of SIGINT: 128 + 2
