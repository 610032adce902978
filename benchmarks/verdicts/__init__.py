"""A verdict on every generator of schedules that can be had here (``__main__``)."""
