"""The one exception of this package."""

__all__ = ["LaunchError"]


class LaunchError(Exception):
    """A launch file or its arguments are wrong; the message is one line for the user."""
