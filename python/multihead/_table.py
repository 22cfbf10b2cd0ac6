"""Table: the rows that an analysis gives, with the whole report beside them."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from ._arguments import checked
from ._errors import ArgumentTypeError, MissingPackageError, UnknownNameError

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]


def flat(row: Mapping[str, Any]) -> Row:
    """The row with dictionaries in it taken apart: ``{"deletion": {"mean": 1}}`` becomes ``{"deletion.mean": 1}``."""
    result: Row = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            result.update({f"{key}.{inner}": number for inner, number in flat(value).items()})
        else:
            result[key] = value
    return result


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple)):
        return f"[{len(value)}]"
    return str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Table(Sequence[Row]):
    """Rows, each a dictionary with the same columns.

    ``table[0]`` is a row, ``table["importance"]`` a column as an array of numpy, ``table[["head", "role"]]`` a table of two,
    ``table.to_pandas()`` a data frame (of the extra ``multihead[pandas]``). ``table.report`` is all that the analysis found, as
    docs/file-formats.md describes it. Printed it has the columns that fit on the screen, and names the others.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], report: Mapping[str, Any] | None = None) -> None:
        self.rows: list[Row] = [flat(row) for row in rows]
        self.columns: list[str] = list(dict.fromkeys(key for row in self.rows for key in row))
        self.report: Mapping[str, Any] = report if report is not None else {}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice | list[str]) -> Table: ...
    @overload
    def __getitem__(self, key: str) -> np.ndarray[Any, Any]: ...
    def __getitem__(self, key: int | slice | str | list[str]) -> Row | Table | np.ndarray[Any, Any]:
        if isinstance(key, slice):
            return self._with(self.rows[key])
        if isinstance(key, list):
            for name in key:
                self._check(name)
            some = self._with([{name: row[name] for name in key if name in row} for row in self.rows])
            some.columns = list(dict.fromkeys(key))
            return some
        if isinstance(key, SupportsIndex):
            return self.rows[key]
        self._check(key)
        values = [row.get(key) for row in self.rows]
        if all(value is None or _is_number(value) for value in values):
            return np.array([np.nan if value is None else value for value in values], dtype=float)
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return column

    def _check(self, column: Any) -> None:
        if not isinstance(column, str):
            raise ArgumentTypeError(f"a table has rows by number and columns by name, got {type(column).__name__}")
        if column not in self.columns:
            raise UnknownNameError(f"there is no column {column!r}; there are {', '.join(self.columns)}")

    def _with(self, rows: Sequence[Row]) -> Table:
        table = Table(rows, self.report)
        table.columns = self.columns
        return table

    @checked
    def sort(self, by: str, *, descending: bool = True) -> Table:
        """The rows by a column, the largest first; rows without a value last."""
        self._check(by)
        there = [row for row in self.rows if row.get(by) is not None]
        missing = [row for row in self.rows if row.get(by) is None]
        return self._with(sorted(there, key=lambda row: row[by], reverse=descending) + missing)

    def where(self, **values: Any) -> Table:
        """The rows in which these columns have these values: ``table.where(relation="obj")``."""
        for column in values:
            self._check(column)
        return self._with([row for row in self.rows if all(row.get(key) == value for key, value in values.items())])

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas with a row for each row. Raises MissingPackageError, an ImportError, without
        pandas."""
        try:
            import pandas
        except ImportError:
            raise MissingPackageError("a data frame needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.rows, columns=self.columns)

    def _shown(self) -> list[str]:
        """The columns of numbers and short texts; the others have lists."""
        return [name for name in self.columns if not any(isinstance(row.get(name), (list, dict)) for row in self.rows)]

    def _left_out(self, shown: Sequence[str]) -> str:
        """A line that names the other columns; empty when there are none."""
        others = [name for name in self.columns if name not in shown]
        return f"not shown: {', '.join(others)}" if others else ""

    def __repr__(self) -> str:
        import shutil

        names, limit = self._shown(), 20
        cells = [[_text(row.get(name)) for name in names] for row in self.rows[:limit]]
        widths = [max([len(name)] + [len(line[i]) for line in cells]) for i, name in enumerate(names)]
        numeric = [all(row.get(name) is None or _is_number(row.get(name)) for row in self.rows) for name in names]
        room = shutil.get_terminal_size((132, 24)).columns
        ends = list(itertools.accumulate(width + 2 for width in widths))
        names = names[: max(1, sum(end - 2 <= room for end in ends))]

        def line(values: Sequence[str]) -> str:
            cut = zip(values, widths, numeric, strict=False)
            parts = [value.rjust(width) if right else value.ljust(width) for value, width, right in cut]
            return "  ".join(parts[: len(names)]).rstrip()

        lines = [line(names)] + [line(values) for values in cells]
        if len(self.rows) > limit:
            lines.append(f"... {len(self.rows)} rows")
        if left_out := self._left_out(names):
            lines.append(textwrap.fill(left_out, max(room, 40), subsequent_indent="  ", break_long_words=False))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        import html

        names, limit = self._shown(), 60
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_text(row.get(name)))}</td>" for name in names) + "</tr>"
            for row in self.rows[:limit]
        )
        more = f"<p>{len(self.rows)} rows, of which {limit} are shown</p>" if len(self.rows) > limit else ""
        left_out = html.escape(self._left_out(names))
        more += f"<p>{left_out}</p>" if left_out else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
