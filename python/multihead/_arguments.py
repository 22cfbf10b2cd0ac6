"""What functions are given, checked before anything runs: the types in their signatures hold, and an error is one line.

Whole numbers, numbers and truth values of numpy and torch become those of Python.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, NamedTuple, ParamSpec, TypeVar, Union, get_args, get_origin

import numpy as np

from ._errors import ArgumentTypeError, FormatError, UsageError

Given = ParamSpec("Given")
Result = TypeVar("Result")


class _Refused(Exception):
    """What was found in place of what is taken, in words."""

    def __init__(self, found: str, kind: type[UsageError | FormatError] = ArgumentTypeError) -> None:
        super().__init__(found)
        self.found = found
        self.kind = kind


class _Kind(NamedTuple):
    """What an argument may be."""

    words: str  # "a whole number"
    take: Callable[[Any], Any]  # returns it in its plain form; raises _Refused

    def of(self, value: Any, argument: str) -> Any:
        try:
            return self.take(value)
        except _Refused as refused:
            raise refused.kind(f"`{argument}`: expected {self.words}, got {refused.found}") from None


def _type_of(value: Any) -> str:
    if isinstance(value, type):
        return f"the type {value.__name__}"
    return "None" if value is None else type(value).__name__


def _take_text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Refused(_type_of(value))
    try:
        value.encode()
    except UnicodeEncodeError as error:
        code = f"U+{ord(value[error.start]):04X}"
        raise _Refused(f"half a character, the surrogate {code} at {error.start}, which UTF-8 does not have", FormatError) from None
    return value


def _take_whole(value: Any) -> int:
    if isinstance(value, float) or not hasattr(type(value), "__index__"):
        raise _Refused(_type_of(value))
    try:
        number = operator.index(value)
    except TypeError:  # an array of several numbers, or of others
        raise _Refused(_type_of(value)) from None
    if not -(2**63) <= number < 2**64:
        raise _Refused("one of more than 64 bits", UsageError)
    return number


def _take_number(value: Any) -> float:
    if isinstance(value, str) or not (hasattr(type(value), "__float__") or hasattr(type(value), "__index__")):
        raise _Refused(_type_of(value))
    try:
        return float(value)
    except OverflowError:
        raise _Refused("one that is too large", UsageError) from None
    except (TypeError, ValueError):
        raise _Refused(_type_of(value)) from None


def _take_truth(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise _Refused(_type_of(value))
    return bool(value)


def _take_path(value: Any) -> Any:
    if not isinstance(value, os.PathLike):
        raise _Refused(_type_of(value))
    if not isinstance(os.fspath(value), str):
        raise _Refused("a path of bytes")
    _take_text(os.fspath(value))
    return value


def _take_function(value: Any) -> Any:
    if not callable(value):
        raise _Refused(_type_of(value))
    return value


_PLAIN = {
    str: _Kind("text", _take_text),
    int: _Kind("a whole number", _take_whole),
    float: _Kind("a number", _take_number),
    bool: _Kind("True or False", _take_truth),
}


def _several(one: _Kind) -> _Kind:
    """Of these; what can be read once alone, an iterator, is checked where it is read."""

    def take(value: Any) -> Any:
        if isinstance(value, (str, bytes, Mapping)) or not hasattr(type(value), "__iter__"):
            raise _Refused(_type_of(value))
        if not isinstance(value, (list, tuple)):
            return value
        try:
            return [one.take(item) for item in value]
        except _Refused as refused:
            raise _Refused(f"{refused.found} in it", refused.kind) from None

    plural = {"text": "texts", "a whole number": "whole numbers", "a number": "numbers"}
    return _Kind(f"a list of {plural.get(one.words, one.words)}", take)


def _named(key: _Kind, one: _Kind) -> _Kind:
    def take(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _Refused(_type_of(value))
        try:
            return {key.take(name): one.take(item) for name, item in value.items()}
        except _Refused as refused:
            raise _Refused(f"{refused.found} in it", refused.kind) from None

    return _Kind(f"a dictionary of {one.words} by {key.words}" if one.words else "a dictionary", take)


def _instance(kind: type) -> _Kind:
    def take(value: Any) -> Any:
        if not isinstance(value, kind):
            remedy = f"; multihead.load({value!r}) gives one" if kind.__name__ == "Model" and isinstance(value, str) else ""
            raise _Refused(_type_of(value) + remedy)
        return value

    return _Kind(f"a {kind.__name__}", take)


def _any_of(kinds: list[_Kind]) -> _Kind:
    def take(value: Any) -> Any:
        refusals = []
        for kind in kinds:
            try:
                return kind.take(value)
            except _Refused as refused:
                refusals.append(refused)
        raise max(refusals, key=lambda refused: len(refused.found))  # which says most of what is in it

    words = [kind.words for kind in kinds]
    return _Kind(" or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words), take)


def _kind_of(hint: Any) -> _Kind | None:
    """None: anything will do."""
    if hint is Any:
        return None
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return next((one for one in inner if isinstance(one, _Kind)), None)
    if origin in (Union, types.UnionType):
        kinds = [_kind_of(one) for one in inner]
        known = [kind for kind in kinds if kind is not None]
        return _any_of(known) if len(known) == len(kinds) else None
    if hint is type(None):
        return _Kind("None", lambda value: None if value is None else _refuse(value))
    if origin is Literal:
        return _Kind(" or ".join(repr(name) for name in inner), _take_text)
    if origin is os.PathLike or hint is os.PathLike:
        return _Kind("a path", _take_path)
    if origin is Callable:
        return _Kind("a function", _take_function)
    parts = [_kind_of(part) or _Kind("", lambda value: value) for part in inner if isinstance(origin, type)]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _named(*parts)
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return _several(parts[0])
    return _instance(hint) if isinstance(hint, type) else None


def _refuse(value: Any) -> Any:
    raise _Refused(_type_of(value))


def text(value: Any, argument: str) -> str:
    """The value, if it is text that UTF-8 has. Raises ArgumentTypeError or FormatError."""
    return str(_PLAIN[str].of(value, argument))


def text_or_list(texts: str | Iterable[str], argument: str) -> tuple[list[str], bool]:
    """The texts as a list, and whether it is a single one."""
    if isinstance(texts, str):
        return [texts], True
    return [text(one, argument) for one in texts], False


def vectors(given: Any, argument: str) -> Any:
    """Numbers as an array of float32. Raises ArgumentTypeError."""
    try:
        return np.asarray(given, np.float32)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"`{argument}`: expected vectors of numbers, got {_type_of(given)}") from None


def whole_numbers(given: Any, argument: str) -> list[int]:
    """Whole numbers of 32 bits, from whatever can be gone through: a list, an array. Raises ArgumentTypeError or UsageError."""
    values = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(type(values), "__iter__"):
        raise ArgumentTypeError(f"`{argument}`: expected whole numbers, got {_type_of(given)}")
    numbers = [_PLAIN[int].of(value, argument) for value in values]
    for number in numbers:
        if not -(2**31) <= number < 2**31:
            raise UsageError(f"`{argument}`: expected whole numbers of 32 bits, got {number}")
    return numbers


def _out_of_range(arguments: Mapping[str, Any]) -> UsageError:
    """The extension module takes whole numbers of 32 or 64 bits, some of them not below 0."""
    numbers = [(name, value) for name, value in arguments.items() if isinstance(value, int)]
    for name, value in [one for one in numbers if abs(one[1]) >= 2**31] + [one for one in numbers if one[1] < 0]:
        return UsageError(f"`{name}`: {value} is out of its range")
    return ArgumentTypeError("an argument has another type than this function takes")


def checked(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """The function with arguments that are checked by its signature."""

    @functools.cache
    def signature() -> tuple[list[str], dict[str, _Kind]]:  # at the first call, when all names in it are known
        parameters = inspect.signature(function).parameters
        found = {}
        for name, one in parameters.items():
            if one.kind is not one.VAR_KEYWORD and one.annotation is not one.empty:
                hint = one.annotation
                if isinstance(hint, str):
                    hint = eval(hint, inspect.unwrap(function).__globals__)  # of this package's own text
                if (kind := _kind_of(hint)) is not None:
                    found[name] = kind
        by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return [name for name, one in parameters.items() if one.kind in by_place], found

    @functools.wraps(function)
    def call(*args: Given.args, **given: Given.kwargs) -> Result:
        names, known = signature()
        places = [known[name].of(value, name) if name in known else value for name, value in zip(names, args, strict=False)]
        named = {name: known[name].of(value, name) if name in known else value for name, value in given.items()}
        try:
            return function(*places, *args[len(names) :], **named)  # type: ignore[arg-type]
        except TypeError as error:
            if "incompatible function arguments" not in str(error):
                raise
            raise _out_of_range({**dict(zip(names, places, strict=False)), **named}) from None

    return call
