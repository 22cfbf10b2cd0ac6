"""Runs notebooks, and writes them with what they show; pages of heads, which are large, are left out.

    python python/run_notebooks.py [--check] examples/*.ipynb

With --check nothing is written. It needs nbclient and ipykernel.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient


def without_pages(outputs: list[Any]) -> list[Any]:
    """Outputs that a repository may hold: no page of heads, no machine's paths."""
    kept = []
    for output in outputs:
        data = output.get("data", {})
        if "<iframe" in data.get("text/html", ""):
            data["text/html"] = "<p>(run the notebook to see the page of heads here)</p>"
        if output.get("name") != "stderr":
            kept.append(output)
    return kept


def run(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a fresh kernel. Raises CellExecutionError when a cell does."""
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": path.parent}}).execute()
    for cell in book.cells:
        cell.get("metadata", {}).pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = without_pages(cell.outputs)
    return book


def main() -> None:
    words = sys.argv[1:]
    for name in words:
        if name == "--check":
            continue
        book = run(Path(name))
        if "--check" not in words:
            nbformat.write(book, name)
        print(name)


if __name__ == "__main__":
    main()
