"""`headrace serve`: run the broker until a signal stops it.

Exactly one line goes to stdout, when clients may connect; everything else is a log on stderr.
"""

from headrace.broker.listeners import client_listener
from headrace.cli.endings import CommandError, tell_error
from headrace.cli.serve.options import ServeOptions, check_exposure, data_directory, load_settings
from headrace.errors import HeadraceError


def run(options: ServeOptions) -> int:
    """Serve until a signal comes; return the exit code."""
    try:
        settings = load_settings(options)
        check_exposure(options, client_listener(settings))
        data_dir = options.data_dir.absolute() if options.data_dir else data_directory(settings)
        data_dir.mkdir(parents=True, exist_ok=True)
        from headrace.cli.serve.lifecycle import serve

        return serve(options, settings, data_dir)
    except HeadraceError as error:
        return tell_error(error)
    except OSError as error:
        reason = f"{error.filename or 'the data directory'}: {error.strerror or error}"
        return tell_error(CommandError(f"cannot use {reason}; choose another --data-dir"))
