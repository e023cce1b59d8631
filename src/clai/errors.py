"""Errors that a user can correct."""


class InputError(ValueError):
    """Bad input from outside: a setting, a file, a row.

    The message names the key, file or row, the value found, the value expected and the remedy. Scripts print it without a
    traceback.
    """


class DivergenceError(InputError):
    """Training has left the finite numbers, or its loss has exploded: the settings do not suit the data."""
