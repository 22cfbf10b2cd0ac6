"""The exceptions of multihead. Every one is an :class:`Error` with a message of one line: the thing, what was expected and found,
the remedy."""


class Error(Exception):
    """Every exception of multihead derives from this one. Raised itself when a result is not finite."""


class UsageError(Error, ValueError):
    """An argument is out of range, or contradicts another one."""


class ArgumentTypeError(UsageError, TypeError):
    """An argument has another type."""


class UnknownNameError(UsageError, KeyError):
    """There is nothing of that name: a column of a table, a site of an observation."""

    def __str__(self) -> str:
        return Exception.__str__(self)  # a KeyError's own puts it between quotes


class ShapeError(UsageError):
    """Shapes do not fit together."""


class FormatError(Error, ValueError):
    """A file or a text has wrong contents: broken UTF-8 or JSON, a header that contradicts the data."""


class FileError(Error, OSError):
    """A file or folder cannot be read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """A file or folder is not there."""


class FilePermissionError(FileError, PermissionError):
    """This user may not read or write a file or folder."""


class MissingPackageError(Error, ImportError):
    """A package of Python that was asked for is not installed."""


class Interrupted(Error):
    """The work was asked to stop. Ctrl-C raises KeyboardInterrupt instead."""


class InternalError(Error, RuntimeError):
    """A mistake in multihead itself; report it with the message."""


class Remark(UserWarning):
    """Something worth knowing that is no error: that a text was cut, which words the tokenizer does not know."""
