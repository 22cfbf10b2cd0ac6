"""Table: the rows that an analysis gives, with the whole report beside them."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

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

    ``table[0]`` is a row, ``table["importance"]`` a column as an array of numpy, ``table.to_pandas()`` a data frame (of the extra
    ``multihead[pandas]``). ``table.report`` is all that the analysis found, as docs/file-formats.md describes it.
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
    def __getitem__(self, key: slice) -> Table: ...
    @overload
    def __getitem__(self, key: str) -> np.ndarray[Any, Any]: ...
    def __getitem__(self, key: int | slice | str) -> Row | Table | np.ndarray[Any, Any]:
        if isinstance(key, int):
            return self.rows[key]
        if isinstance(key, slice):
            return self._with(self.rows[key])
        if key not in self.columns:
            raise KeyError(f"there is no column {key!r}; there are {', '.join(self.columns)}")
        values = [row.get(key) for row in self.rows]
        if all(value is None or _is_number(value) for value in values):
            return np.array([np.nan if value is None else value for value in values], dtype=float)
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return column

    def _with(self, rows: Sequence[Row]) -> Table:
        table = Table(rows, self.report)
        table.columns = self.columns
        return table

    def sort(self, by: str, *, descending: bool = True) -> Table:
        """The rows by a column, the largest first; rows without a value last."""
        self[by]  # names the columns when there is none of that name
        there = [row for row in self.rows if row.get(by) is not None]
        missing = [row for row in self.rows if row.get(by) is None]
        return self._with(sorted(there, key=lambda row: row[by], reverse=descending) + missing)

    def where(self, **values: Any) -> Table:
        """The rows in which these columns have these values: ``table.where(relation="obj")``."""
        for column in values:
            self[column]
        return self._with([row for row in self.rows if all(row.get(key) == value for key, value in values.items())])

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas with a row for each row. Raises ImportError without pandas."""
        import pandas

        return pandas.DataFrame(self.rows, columns=self.columns)

    def _shown(self) -> list[str]:
        """The columns that fit on a screen: numbers and short texts."""
        return [name for name in self.columns if not any(isinstance(row.get(name), (list, dict)) for row in self.rows)][:12]

    def __repr__(self) -> str:
        names, limit = self._shown(), 20
        cells = [[_text(row.get(name)) for name in names] for row in self.rows[:limit]]
        widths = [max([len(name)] + [len(line[i]) for line in cells]) for i, name in enumerate(names)]
        numeric = [all(row.get(name) is None or _is_number(row.get(name)) for row in self.rows) for name in names]

        def line(values: Sequence[str]) -> str:
            cut = zip(values, widths, numeric, strict=True)
            parts = [value.rjust(width) if right else value.ljust(width) for value, width, right in cut]
            return "  ".join(parts).rstrip()

        text = "\n".join([line(names)] + [line(values) for values in cells])
        if len(self.rows) > limit:
            text += f"\n... {len(self.rows)} rows"
        return text

    def _repr_html_(self) -> str:
        names, limit = self._shown(), 60
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_text(row.get(name)))}</td>" for name in names) + "</tr>"
            for row in self.rows[:limit]
        )
        more = f"<p>{len(self.rows)} rows, of which {limit} are shown</p>" if len(self.rows) > limit else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"
