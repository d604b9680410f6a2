"""One list of dependencies in three files, and nothing in the repository that belongs to one machine only."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CONDA_NAMES = {"pytorch": "torch"}
IMPORT_NAMES = {
    "ipython": "IPython",
    "jupyter-client": "jupyter_client",
    "jupyter-core": "jupyter_core",
    "pyyaml": "yaml",
    "pyzmq": "zmq",
}


def declared() -> dict[str, Requirement]:
    """The dependencies of pyproject.toml, those for development included, by canonical name."""
    project = PROJECT["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    found = {canonicalize_name(Requirement(line).name): Requirement(line) for line in lines}
    assert len(found) == len(lines), "a dependency is listed twice"
    return found


def pins() -> dict[str, Version]:
    """The pins of constraints.txt, by canonical name."""
    found = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, exact, version = line.partition("==")
            assert exact, f"{line!r} in constraints.txt is no exact pin"
            assert canonicalize_name(name) not in found, f"{name} is pinned twice"
            found[canonicalize_name(name)] = Version(version)
    return found


def test_conda_and_pip_install_the_same() -> None:
    """environment.yml lists what pyproject.toml lists, with the same lower bounds, and Python's too."""
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    listed = {}
    for line in environment["dependencies"]:
        if isinstance(line, str) and line != "pip":
            requirement = Requirement(line)
            name = canonicalize_name(requirement.name)
            listed[CONDA_NAMES.get(name, name)] = str(requirement.specifier)
    python = listed.pop("python")
    assert python == PROJECT["project"]["requires-python"]
    assert listed == {name: str(requirement.specifier) for name, requirement in declared().items()}
    assert {"pip": ["--editable ."]} in environment["dependencies"]


@pytest.mark.parametrize("name", sorted(declared()))
def test_every_dependency_has_a_lower_bound_and_a_pin_above_it(name: str) -> None:
    """pyproject.toml says from which version on; constraints.txt which one was tested."""
    requirement = declared()[name]
    assert [clause.operator for clause in requirement.specifier] == [">="]
    assert name in pins(), f"{name} has no pin in constraints.txt"
    assert requirement.specifier.contains(pins()[name])


def test_torch_is_pinned_without_a_build() -> None:
    """The pin fits CPU and CUDA builds alike: no local version such as +cpu."""
    assert pins()["torch"].local is None


@pytest.mark.parametrize("tool", ["setuptools", "pip", "wheel"])
def test_installers_are_not_pinned(tool: str) -> None:
    """What installs is the machine's own; a pin on it could fight the machine."""
    assert tool not in pins()


def test_every_import_is_a_declared_dependency() -> None:
    """What the code imports is declared, not only dragged in by something else; tests may use what pytest brings."""
    imported = set()
    for package in ("autograder", "course"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    imported.add(node.module.partition(".")[0])
    others = imported - sys.stdlib_module_names - {"autograder", "course"}
    known = {IMPORT_NAMES.get(name, name) for name in declared()}
    assert others <= known, f"imported and not in pyproject.toml: {sorted(others - known)}"


def tracked_text_files() -> list[Path]:
    """What the repository holds or would hold: git's list, ignored files left out."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split("\0")
    if listed == [""]:
        pytest.skip("not a git checkout: there is no list of tracked files")
    binary = (".png", ".zip", ".gz", ".7z", ".rar", ".db", ".pdf")
    return [ROOT / name for name in listed if name and not name.endswith(binary) and (ROOT / name).is_file()]


MACHINE_PATHS = re.compile(r"(?<![\w.])(?:/(?:home|Users|root|work)/\w|[A-Z]:\\Users\\)")
HOSTS = re.compile(r"(?:index-url|trusted-host|registry|proxy)\W{1,4}(?:https?://)?([\w-]+(?:\.[\w-]+)+)")
LOCAL_ADDRESSES = re.compile(r"https?://(?:localhost|\d+\.\d+\.\d+\.\d+|[\w.-]+\.(?:internal|local|corp|lan))\b")


def test_no_file_belongs_to_one_machine() -> None:
    """No home folder, no private host and no package index: pip is set up where it runs."""
    faults = []
    for path in tracked_text_files():
        text = path.read_text(encoding="utf-8", errors="replace")
        name = str(path.relative_to(ROOT))
        for pattern in (MACHINE_PATHS, LOCAL_ADDRESSES):
            faults += [f"{name}: {match.group()}" for match in pattern.finditer(text)]
        faults += [f"{name}: {host}" for host in HOSTS.findall(text)]
    assert not faults


def test_both_licences_are_here() -> None:
    """Code is under BSD-3-Clause, lessons under CC BY 4.0; pyproject.toml says the same and names both files."""
    project = PROJECT["project"]
    assert project["license"] == "BSD-3-Clause AND CC-BY-4.0"
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in project["license-files"]]
    assert "Redistribution and use in source and binary forms" in texts[0]
    assert "Creative Commons Attribution 4.0 International" in texts[1]


def test_grading_leaves_nothing_to_commit() -> None:
    """What grading writes (submissions, scores, feedback, the course key) is ignored by git."""
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    for name in ("submitted/", "autograded/", "feedback/", "reports/", "exports/", "gradebook.db*", ".course-key"):
        assert name in ignored
