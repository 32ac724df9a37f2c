"""The throttle time of every answer: none, until there are quotas."""

import datetime

from kio.static.primitive import i32Timedelta

NO_THROTTLE = i32Timedelta.parse(datetime.timedelta(0))
