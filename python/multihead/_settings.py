"""Settings of functions: the library describes each once, `scripts/python_settings` writes signatures and docs."""

from __future__ import annotations

import functools
import inspect
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, get_type_hints

from . import _native
from ._errors import UsageError
from ._names import listed

Given = ParamSpec("Given")
Result = TypeVar("Result")

Options = Mapping[str, Any] | None


@functools.cache
def described(verb: str) -> dict[str, dict[str, Any]]:
    """What the library says of each setting of the verb: "kind", "values", "within", "default", "help"."""
    return {setting["name"]: setting for setting in json.loads(_native.settings(verb))["settings"]}


def default_of(verb: str, name: str) -> Any:
    value = json.loads(described(verb)[name]["default"])
    return tuple(value) if isinstance(value, list) else value


def settings(verb: str, arguments: Mapping[str, Any], **fixed: Any) -> str:
    """The settings of the verb among a function's arguments, and `fixed`, as JSON; of several names one may be given alone."""
    several = {name for name, one in described(verb).items() if one["kind"] in ("texts", "names")}
    given = {name: arguments[name] for name in described(verb) if name in arguments} | fixed
    for name, value in given.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"`{name}`: expected a finite number, got {value}")
        if isinstance(value, bool) and "true" in described(verb).get(name, {}).get("values", ()):
            given[name] = str(value).lower()
    return json.dumps({name: listed(value, name) if name in several else value for name, value in given.items()})


def _nearest(name: str, names: list[str]) -> str:
    found = _native.suggestions(name, names)
    return f"; did you mean `{found[0]}`?" if found else ""


def _has_no(function: Callable[..., Any], name: str, names: list[str]) -> UsageError:
    return UsageError(f"{function.__name__} has no argument `{name}`{_nearest(name, names)}")


def with_settings(verb: str, kind: type) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """The function whose ``**settings`` are those of `kind`, with their defaults in its signature; it refuses others."""

    def decorate(function: Callable[Given, Result]) -> Callable[Given, Result]:
        plain = inspect.signature(function)
        own = [one for one in plain.parameters.values() if one.kind is not one.VAR_KEYWORD]
        all_of_them = own + [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default_of(verb, name), annotation=hint)
            for name, hint in get_type_hints(kind).items()
        ]
        names = [one.name for one in all_of_them]

        @functools.wraps(function)
        def call(*args: Given.args, **given: Given.kwargs) -> Result:
            for name in given:
                if name not in names:
                    raise _has_no(function, name, names)
            return function(*args, **given)

        call.__signature__ = plain.replace(parameters=all_of_them)  # type: ignore[attr-defined]
        return call

    return decorate


def with_options(verb: str, **fixed: Any) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """The function with `options`, as ``table.report["options"]`` has them; arguments that are given count before them.

    fixed: settings that the function has by itself: the options of another function of the verb have others.
    """

    def decorate(function: Callable[Given, Result]) -> Callable[Given, Result]:
        names = list(inspect.signature(function).parameters)

        def taken(options: Mapping[str, Any]) -> dict[str, Any]:
            for name, value in options.items():
                if name not in described(verb):
                    raise UsageError(f"`options`: there is no `{name}`{_nearest(name, list(described(verb)))}")
                if name in fixed and value != fixed[name]:
                    raise UsageError(f"`options`: `{name}` is {value!r}, and {function.__name__} makes those with {fixed[name]!r}")
            return {name: value for name, value in options.items() if name in names}

        @functools.wraps(function)
        def call(*args: Given.args, **given: Given.kwargs) -> Result:
            for name in given:
                if name not in names:
                    raise _has_no(function, name, names)
            options = given.get("options")
            if isinstance(options, Mapping):
                given = {**taken(options), **given, "options": options}  # type: ignore[assignment]
            return function(*args, **given)

        return call

    return decorate
