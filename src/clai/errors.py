"""Errors that a user can put right."""


class InputError(ValueError):
    """Bad input from outside: a setting, a file, a row.

    The message names the key, file or row, what was found, what was expected and what to do. Scripts print it
    without a traceback.
    """


class DivergenceError(InputError):
    """Training has left the finite numbers, or gone where no healthy run goes: the settings do not suit the data."""
