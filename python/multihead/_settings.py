"""Settings of the analyses of heads: the library describes each once, `scripts/python_settings` writes signatures and docs."""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from . import _native
from ._errors import UsageError
from ._names import listed

Given = ParamSpec("Given")
Result = TypeVar("Result")

Options = Mapping[str, Any] | None


@functools.cache
def described(verb: str) -> dict[str, dict[str, Any]]:
    """What the library says of each setting of ``multihead heads VERB``: "kind", "values", "within", "default", "help"."""
    return {setting["name"]: setting for setting in json.loads(_native.settings(verb))["settings"]}


def settings(verb: str, arguments: Mapping[str, Any]) -> str:
    """The settings of the verb that are among a function's arguments, as JSON; of several names one may be given alone."""
    several = {name for name, one in described(verb).items() if one["kind"] in ("texts", "names")}
    found = {name: arguments[name] for name in described(verb) if name in arguments}
    return json.dumps({name: listed(value, name) if name in several else value for name, value in found.items()})


def _nearest(name: str, names: list[str]) -> str:
    found = _native.suggestions(name, names)
    return f"; did you mean `{found[0]}`?" if found else ""


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
                    raise UsageError(f"{function.__name__} has no argument `{name}`{_nearest(name, names)}")
            options = given.get("options")
            if isinstance(options, Mapping):
                given = {**taken(options), **given, "options": options}  # type: ignore[assignment]
            return function(*args, **given)

        return call

    return decorate
