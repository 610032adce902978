"""The base of our errors: one ``except bp.Error`` catches all that are raised on purpose."""


class Error(Exception):
    """Base of every error that is raised on purpose; any other is a fault of this program."""
