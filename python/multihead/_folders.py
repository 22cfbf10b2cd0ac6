"""Where models are: folders, GGUF files, and Hugging Face's local cache."""

from __future__ import annotations

import os
import re

from ._errors import MissingFileError


def cache_folder() -> str:
    """Where Hugging Face keeps what was downloaded: $HF_HUB_CACHE, $HF_HOME/hub, or ~/.cache/huggingface/hub."""
    if cache := os.environ.get("HF_HUB_CACHE"):
        return cache
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.environ.get("HF_HOME") or os.path.join(caches, "huggingface"), "hub")


def is_repository(name: str) -> bool:
    """Whether a model of Hugging Face could be called so: "gpt2", "sentence-transformers/all-MiniLM-L6-v2"."""
    return 1 <= len(name.split("/")) <= 2 and all(re.fullmatch(r"[\w.-]*\w[\w.-]*", part) for part in name.split("/"))


def cached_model(name: str) -> str | None:
    """The newest snapshot of a model such as "sentence-transformers/all-MiniLM-L6-v2" in that cache. Nothing is downloaded."""
    if not is_repository(name):
        return None
    folder = os.path.join(cache_folder(), "models--" + name.replace("/", "--"))
    try:
        with open(os.path.join(folder, "refs", "main"), encoding="utf-8") as file:
            commit = file.read().strip()
    except OSError:
        return None
    snapshot = os.path.join(folder, "snapshots", commit)
    return snapshot if os.path.exists(os.path.join(snapshot, "config.json")) else None


def model_path(name: str | os.PathLike[str]) -> str:
    """A folder or file of that name, or a model of Hugging Face's cache. Raises MissingFileError where it is neither and the name
    could be that of a model; any other name is returned as it is."""
    path = os.fspath(name)
    if not isinstance(name, str) or os.path.exists(path) or path == "demo":
        return path
    if (found := cached_model(path)) is not None:
        return found
    if is_repository(path) and not path.endswith(".gguf"):
        raise MissingFileError(
            f"no model folder {path}, and no model of that name in Hugging Face's cache {cache_folder()}; nothing is downloaded: "
            f"give a folder, such as the one that huggingface_hub.snapshot_download({path!r}) returns"
        )
    return path
