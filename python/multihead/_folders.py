"""Where models are: folders, GGUF files, and Hugging Face's local cache."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Where Hugging Face keeps what was downloaded: $HF_HUB_CACHE, $HF_HOME/hub, or ~/.cache/huggingface/hub."""
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache)
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(home) / "hub"


def cached_model(name: str) -> Path | None:
    """The newest snapshot of a model such as "sentence-transformers/all-MiniLM-L6-v2" in that cache. Nothing is downloaded."""
    if not 1 <= len(name.split("/")) <= 2 or any(part in ("", ".", "..") for part in name.split("/")):
        return None
    folder = cache_folder() / ("models--" + name.replace("/", "--"))
    try:
        commit = (folder / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        return None
    snapshot = folder / "snapshots" / commit
    return snapshot if (snapshot / "config.json").exists() else None


def model_path(name: str | os.PathLike[str]) -> str:
    """A folder or file of that name; else a model of Hugging Face's cache; else the name, which names what is missing."""
    path = os.fspath(name)
    if not isinstance(name, str) or os.path.exists(path) or path == "demo":
        return path
    found = cached_model(path)
    return str(found) if found is not None else path
