"""Writes docs/checked.md from the reports of `multihead check`: python scripts/check_models.py REPORTS TO. scripts/check_models
makes the reports; their names begin with the number of their table."""

import json
import sys
from pathlib import Path

TABLES = ["Models that others trained", "A small random folder of each family", "A small random GGUF file of each architecture"]
PAGE = """# Models that were checked

What [`multihead check`](verbs/check.md) finds: the largest relative difference of any site, text by text, in one batch and with a
cache, between what is computed here and what transformers computes in double precision. `scripts/check_models` runs it and writes
this page. transformers {transformers}, torch {torch}, Python {python}; tolerance {tolerance:g}. `scripts/models` fetches the first
models; the others are in tests/goldens.
"""


def largest(part):
    """infinite and nan are texts."""
    return max(float(part[run]) for run in ("together", "alone", "cached") if part[run] is not None)


def greedy(report):
    found = report["greedy"]
    if not found["texts"]:
        return "–"
    return f"{found['texts']} texts alike" if found["first"] is None else f"differs at token {found['first']['token'] + 1}"


def row(name, report):
    worst = max(report["parts"], key=largest)
    part = worst["part"].split(".", 1)[1] if worst["part"].count(".") > 1 else worst["part"]
    tokens = sum(len(text["ids"]) for text in report["texts"])
    verdict = "right" if report["right"] else "differs"
    return [name, report["class"], str(tokens), str(len(report["sites"])), f"{largest(worst):.1e}", part.replace("_", " "),
            f"{largest(report['parts'][-1]):.1e}", greedy(report), verdict]


def table(files):
    head = ["model", "class of transformers", "tokens", "sites", "largest", "at", "of its outputs", "greedy text", "verdict"]
    lines = [head, ["---"] * len(head)]
    for file in files:
        name = file.stem.split(" ", 1)[1].replace(" ", "/")
        lines.append(row(f"`{name}`", json.loads(file.read_text(encoding="utf-8"))))
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def main():
    files, to = sorted(Path(sys.argv[1]).glob("*.json")), Path(sys.argv[2])
    reports = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    versions = {(r["versions"]["transformers"], r["versions"]["torch"], r["versions"]["python"]) for r in reports}
    assert len(versions) == 1, f"reports of several versions: {versions}; remove the old ones"
    page = PAGE.format(**reports[0]["versions"], tolerance=reports[0]["options"]["tolerance"])
    for number, title in enumerate(TABLES):
        page += f"\n## {title}\n\n" + table([file for file in files if file.name.startswith(f"{number} ")])
    to.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
