"""The files that say what to install, read and held against each other."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

CONDA_TO_PYPI = {"pytorch-cpu": "torch"}
ONLY_ON_BINDER = {"voila"}


def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


def pins(root: Path) -> dict[str, str]:
    """constraints.txt as {name: version}; ValueError for a line that is not name==version."""
    text = (root / "constraints.txt").read_text()
    found = {}
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        if not (pair := re.fullmatch(r"([\w.-]+)==([\w.]+)", line)):
            raise ValueError(f"constraints.txt: {line} does not read name==version")
        found[canonicalize_name(pair[1])] = pair[2]
    return found


def environment(root: Path) -> dict[str, str]:
    """binder/environment.yml as {name on the package index: version}, "" where none is named;
    conda's python and pip among them."""
    listed = yaml.safe_load((root / "binder" / "environment.yml").read_text())["dependencies"]
    conda = [line.partition("=") for line in listed if isinstance(line, str)]
    pip = [
        line.partition("==") for part in listed if isinstance(part, dict) for line in part["pip"]
    ]
    pairs = ((CONDA_TO_PYPI.get(name, name), version) for name, _, version in conda + pip)
    return {canonicalize_name(name): version for name, version in pairs}


def disagreements(root: Path) -> Iterator[str]:
    """Where the files of the project in `root` contradict each other; nothing if they agree."""
    if (root / "environment.yml").read_bytes() != (root / "binder/environment.yml").read_bytes():
        yield "environment.yml and binder/environment.yml differ"
    listed, pinned = environment(root), pins(root)
    python = listed.pop("python", "")
    if not re.fullmatch(r"3\.\d+", python) or not SpecifierSet(
        project(root)["requires-python"]
    ).contains(python):
        yield f"the environment has python {python or 'of any version'}"
    listed.pop("pip", None)
    for name, version in listed.items():
        if version != pinned.get(name):
            yield f"{name} is {version or 'of any version'}, constraints.txt has {pinned.get(name)}"
    needed = {canonicalize_name(Requirement(line).name) for line in project(root)["dependencies"]}
    for name in needed - set(listed):
        yield f"the environment lacks {name}"
    for name in set(listed) - needed - ONLY_ON_BINDER:
        yield f"nothing needs {name} in the environment"
    text = (root / "binder" / "environment.yml").read_text()
    if "pytorch-cpu" not in text or re.search(r"cuda|gpu|nvidia", text):
        yield "the environment's torch is not the one for the CPU"
    extras = project(root)["optional-dependencies"].values()
    for line in [*project(root)["dependencies"], *(line for extra in extras for line in extra)]:
        need = Requirement(line)
        has = pinned.get(canonicalize_name(need.name))
        if has is None or not need.specifier.contains(has):
            yield f"pyproject.toml wants {need.name} {need.specifier}, constraints.txt has {has}"
