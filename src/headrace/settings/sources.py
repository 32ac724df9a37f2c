"""The places a static setting comes from: a properties file, the environment, the command line.

Each value carries its source, so that an error can name the line or the variable to mend.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from headrace.properties import Assignment
from headrace.settings.catalogue import BROKER
from headrace.settings.errors import UnknownSettingError
from headrace.settings.own import OTHER_VARIABLES, PREFIX

VARIABLE_PREFIX = "HEADRACE_"
# A misspelt name is stopped: its setting would silently not act. One that is further away from all
# of ours is somebody else's. 1 is the same; a letter left out of sixteen is 0.97, a word left out
# of three 0.87, and a name that merely shares a word with one of ours hardly ever 0.8.
_NEAR_MISS = 0.82
# What Kubernetes tells every pod of a service called headrace, or headrace-and-more.
_SERVICE = re.compile(
    VARIABLE_PREFIX + r"(\w+_)?"
    r"(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_URL = re.compile(r"(tcp|udp|sctp)://\S+:\d+")


class Environment(NamedTuple):
    """The settings that variables give, and what is to be said of others with our prefix."""

    assignments: list[Assignment]
    warnings: list[str]


def variable_name(setting_name: str) -> str:
    """Return the environment variable of a setting: HEADRACE_LOG_DIRS for log.dirs."""
    return VARIABLE_PREFIX + setting_name.removeprefix(PREFIX).replace(".", "_").upper()


VARIABLES = {variable_name(name): name for name in BROKER}


def read_environment(environment: Mapping[str, str]) -> Environment:
    """Return the settings in the HEADRACE_ variables; raises UnknownSettingError on a near miss.

    Others may set variables that begin like ours, as Kubernetes does: those are told of.
    """
    assignments, warnings, of_services = list[Assignment](), list[str](), list[str]()
    for variable, value in environment.items():
        if not _begins_like_ours(variable) or variable in OTHER_VARIABLES:
            continue
        if _is_of_a_service(variable, value):
            of_services.append(variable)
        elif variable in VARIABLES:
            assignments.append(Assignment(VARIABLES[variable], value, variable))
        elif (meant := _near_miss(variable)) is not None:
            raise UnknownSettingError(variable, source="environment", suggestion=meant)
        else:
            warnings.append(f"environment: {variable} is no setting and has no effect")
    if of_services:
        warnings.append(
            f"environment: Kubernetes' variables of a service are no settings and have no effect: "
            f"{', '.join(sorted(of_services))}; with enableServiceLinks: false the pod gets none"
        )
    return Environment(assignments, warnings)


def _begins_like_ours(variable: str) -> bool:
    # In small letters too: log.dirs is written so, and headrace_log_dirs would silently not act.
    return variable.upper().startswith(VARIABLE_PREFIX)


def _is_of_a_service(variable: str, value: str) -> bool:
    """Whether Kubernetes has set it. Of a port it says the URL, which no setting of a port is."""
    if variable.endswith("_PORT") and _SERVICE_URL.fullmatch(value):
        return True
    return _SERVICE.fullmatch(variable) is not None


def _near_miss(variable: str) -> str | None:
    """The variable that was probably meant; the prefix, which all share, makes nothing alike."""
    known = {name.removeprefix(VARIABLE_PREFIX): name for name in (*VARIABLES, *OTHER_VARIABLES)}
    meant = nearest(variable.upper().replace(VARIABLE_PREFIX, ""), known, _NEAR_MISS)
    return None if meant is None else known[meant]


def read_command_line(overrides: Mapping[str, str]) -> list[Assignment]:
    """Return what `--set` or a caller in the same process says."""
    return [Assignment(name, value, f"--set {name}") for name, value in overrides.items()]


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the known name that was probably meant."""
    import difflib  # here because it is slow to import and only an error needs it

    return next(iter(difflib.get_close_matches(name, list(known), 1, likeness)), None)
