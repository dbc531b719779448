"""What the unit tests share."""

from hypothesis import settings

# A property that holds slowly holds: no test here is about time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
