"""Hours of the day, in UTC, as the configuration file and the command line have them."""

import re
from typing import Self

from bpac.errors import SettingsError

MINUTES_OF_DAY = 24 * 60
_WRITTEN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


class Hours(str):
    """A part of every day, written as ``HH:MM-HH:MM``.

    Attributes
    ----------
    first, last: in minutes after midnight, UTC; the last no longer belongs to it. It may be on the next day.
    """

    __slots__ = ("first", "last")

    first: int
    last: int

    @classmethod
    def read(cls, value: object) -> Self:
        """The hours that a setting names.

        >>> hours = Hours.read("22:30-06:00")
        >>> hours.first, hours.last
        (1350, 360)
        """
        found = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise SettingsError(f'expected hours in UTC such as "22:30-06:00", got {value!r}')
        hour, minute, last_hour, last_minute = map(int, found.groups())
        hours = cls(value)
        hours.first, hours.last = 60 * hour + minute, 60 * last_hour + last_minute
        if hours.first == hours.last:
            raise SettingsError(f"{value} ends when it begins: give two different times")
        return hours

    def has(self, seconds: float) -> bool:
        """Whether a time, in seconds since 1970, is in these hours.

        >>> [Hours.read("22:30-06:00").has(3600 * hour) for hour in (5, 6, 22, 23)]
        [True, False, False, True]
        """
        minute = int(seconds // 60) % MINUTES_OF_DAY
        if self.first < self.last:
            return self.first <= minute < self.last
        return minute >= self.first or minute < self.last
