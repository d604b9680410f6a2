"""The sandbox around a warm process: bubblewrap, and what it lets a submission see.

Visible, read-only: the system's programs and libraries, this interpreter, the packages that kernels use, and the four
modules of ours with which a kernel asks its examiner. Writable: three small folders in memory. Not there: network, home
folder, course, reference solutions, gradebook, other submissions, the owner's environment variables.

An ordinary user's sandbox is a user namespace. Root's is not: there the process gives up root for a user id of its own.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from autograder.errors import OrderMattersError
from autograder.kernels import scratch, seccomp
from autograder.kernels.variables import BEFORE_LOADING

MINIMUM_VERSION = (0, 8)
"""The first with `--size`, which bounds the folders in memory."""
LIBRARIES = "/om"
"""Where the sandbox has the modules of ours that a kernel needs."""
OURS = (
    "autograder/__init__.py",
    "autograder/examiner/__init__.py",
    "autograder/examiner/address.py",
    "autograder/examiner/client.py",
    "autograder/examiner/protocol.py",
    "autograder/kernels/__init__.py",
    "autograder/kernels/channel.py",
    "autograder/kernels/scratch.py",
    "autograder/kernels/shell.py",
    "autograder/kernels/zygote.py",
)
HIDDEN_PACKAGES = ("autograder", "course")
THEIRS = ("torch", "numpy", "matplotlib", "IPython", "ipykernel", "jupyter_client", "traitlets", "matplotlib_inline")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SOURCES = ("/usr/src", "/usr/local/src")
"""Parts of the system in which a course may lie (Docker's images often work there); they are hidden."""
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/fonts")
GPU_DEVICES = ("nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps")
FIRST_SPARE_UID, SPARE_UIDS = 61184, 4000
"""User ids that no account has (systemd keeps them for passing needs); each of root's sandboxes takes one."""
MIB = 2**20


class NoSandbox(OrderMattersError):
    """There is no working bubblewrap here, and nobody said to go on without."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(
            f"Submissions are run in a sandbox, and there is none: {why}. {remedy} "
            "To run submissions that you trust as your own programs, add --no-sandbox."
        )
        self.why, self.remedy = why, remedy


def require(course: Path | None = None) -> str:
    """The path of a bubblewrap that works here. Raises NoSandbox with the remedy.

    Args:
        course: the course folder, which must not lie in a folder that the sandbox shows.
    """
    problem = _problem()
    if problem:
        raise NoSandbox(*problem)
    if course is not None:
        place = course.resolve()
        hidden = any(place.is_relative_to(source) for source in SOURCES)
        for folder in () if hidden else (*map(Path, SYSTEM), *_shown()):
            if place.is_relative_to(folder):
                raise NoSandbox(
                    f"the course folder {course} lies in {folder}, which every submission can read",
                    "Move the course to a folder of its own.",
                )
    found = shutil.which("bwrap")
    assert found is not None
    return found


@lru_cache(maxsize=1)
def _problem() -> tuple[str, str] | None:
    """What is wrong and what mends it; None when a sandbox can be made."""
    if sys.platform != "linux":
        return (
            f"bubblewrap needs Linux, this is {platform.system()}",
            "Grade on Linux, in a container or a virtual machine.",
        )
    if platform.machine() not in seccomp.MACHINES:
        return f"no filter of system calls is known for {platform.machine()}", "Grade on an x86-64 or arm64 machine."
    found = shutil.which("bwrap")
    if not found:
        return "bubblewrap is not installed", "Install it: apt install bubblewrap (or dnf, pacman, zypper)."
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:2])
    if version < MINIMUM_VERSION:
        wanted = ".".join(map(str, MINIMUM_VERSION))
        return f"{said.strip() or found} is too old", f"Install bubblewrap {wanted} or newer."
    trial = [found, *_namespaces(), "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    done = subprocess.run(trial, capture_output=True, text=True, check=False)
    if done.returncode:
        remedy = (
            "Allow it: sysctl kernel.unprivileged_userns_clone=1 (Debian), an AppArmor profile for bwrap with `userns` "
            "(Ubuntu 24.04 and later), or, inside Docker, --security-opt seccomp=unconfined --security-opt "
            "apparmor=unconfined --security-opt systempaths=unconfined."
        )
        return f"bubblewrap can't start ({done.stderr.strip()})", remedy
    return None


def _namespaces() -> list[str]:
    """New namespaces of every kind. Root makes them as root; a user needs one of its own first."""
    own_user = [] if os.geteuid() == 0 else ["--unshare-user"]
    return [
        *own_user,
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *("--as-pid-1", "--die-with-parent", "--new-session"),
    ]


def command(arguments: list[str], *, gpu: bool, scratch_mib: int, seccomp_fd: int) -> list[str]:
    """The command line that starts `python` with these arguments in a new sandbox.

    Args:
        gpu: let NVIDIA's devices be seen.
        scratch_mib: size of each writable folder.
        seccomp_fd: an open descriptor with the filter; must be passed on.
    """
    as_root = os.geteuid() == 0
    writable = ["--perms", "1777" if as_root else "0700", "--size", str(scratch_mib * MIB), "--tmpfs"]
    line = [require(), *_namespaces(), "--hostname", "notebook", "--clearenv"]
    line += ["--cap-drop", "ALL", *(("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID") if as_root else ())]
    shown = list(_shown())
    inside = [*shown, *map(Path, SYSTEM_FILES), *map(_library, OURS), Path(LIBRARIES, "matplotlib", "fonts")]
    for parent in sorted({parent for path in inside for parent in path.parents} - {Path("/"), *map(Path, SYSTEM)}):
        line += ["--perms", "0755", "--dir", str(parent)]  # left to itself, bubblewrap lets only root in
    for folder in shown:
        line += ["--ro-bind", str(folder), str(folder)]
    if not any(folder.is_relative_to("/tmp") for folder in shown):
        line += ["--symlink", scratch.FOLDER, "/tmp"]
    for system in SYSTEM:
        if os.path.islink(system):
            line += ["--symlink", os.readlink(system), system]
        elif os.path.isdir(system):
            line += ["--ro-bind", system, system]
    for hidden in map(Path, SOURCES):
        if hidden.is_dir() and not any(folder.is_relative_to(hidden) for folder in shown):
            line += ["--tmpfs", str(hidden), "--remount-ro", str(hidden)]
    for file in SYSTEM_FILES:
        line += ["--ro-bind-try", file, file]
    for package in _hidden():
        line += ["--tmpfs", str(package), "--remount-ro", str(package)]
    root = Path(__file__).resolve().parent.parent.parent
    for name in OURS:
        line += ["--ro-bind", str(root / name), str(_library(name))]
    line += ["--proc", "/proc", "--dev", "/dev", "--dev-bind", "/dev/null", "/dev/zero"]
    if gpu:
        for name in GPU_DEVICES:
            line += ["--dev-bind-try", f"/dev/{name}", f"/dev/{name}"]
        line += ["--ro-bind-try", "/sys", "/sys"]
    for place in scratch.WRITABLE:
        line += [*writable, place]
    fonts = _font_cache()
    if fonts:
        line += ["--ro-bind", str(fonts), f"{LIBRARIES}/matplotlib/{fonts.name}"]
    line += ["--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in {
        **{"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": scratch.FOLDER},
        **{"PYTHONPATH": LIBRARIES, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"},
        **BEFORE_LOADING,
        **{"MPLCONFIGDIR": f"{LIBRARIES}/matplotlib" if fonts else scratch.FOLDER},
        **{"IPYTHONDIR": f"{scratch.FOLDER}/ipython", "TMPDIR": scratch.FOLDER},
    }.items():
        line += ["--setenv", name, value]
    line += ["--seccomp", str(seccomp_fd), "--chdir", scratch.FOLDER, "--", sys.executable, "-P", *arguments]
    if as_root:
        line.append(str(FIRST_SPARE_UID + _next_uid() % SPARE_UIDS))
    return line


def _library(name: str) -> Path:
    return Path(LIBRARIES, name)


_uids_taken = 0


def _next_uid() -> int:
    """Sandboxes that live at the same time differ in it: processes are limited, and can be signalled, by user."""
    global _uids_taken
    _uids_taken += 1
    return os.getpid() * 7 + _uids_taken


def _shown() -> Iterator[Path]:
    """Folders with the interpreter and the packages that kernels use, each once, none inside another."""
    wanted = {Path(sysconfig.get_paths()[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    wanted |= {Path(sys.executable).parent, Path(os.path.realpath(sys.executable)).parent}
    wanted |= {Path(sys.base_prefix) / "lib", Path(sys.prefix) / "lib", Path(sys.prefix) / "pyvenv.cfg"}
    for name in THEIRS:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise OrderMattersError(f"The package {name} is not installed; `autograder doctor` tells what to do.")
        wanted.add(Path(spec.origin).parent.parent)
    existing = {path.absolute() for path in wanted if path.exists()}
    existing = {path for path in existing if not any(path.is_relative_to(system) for system in SYSTEM)}
    for path in sorted(existing):
        if not any(other != path and path.is_relative_to(other) for other in existing):
            yield path


def _hidden() -> Iterator[Path]:
    """Copies of our packages that lie in a folder that is shown, with the reference solutions in them."""
    for folder in {*_shown(), Path("/usr/lib"), Path("/usr/local/lib")}:
        sites = {folder, *folder.glob("python3*/site-packages"), *folder.glob("python3*/dist-packages")}
        for site in sites:
            for name in HIDDEN_PACKAGES:
                if (site / name / "__init__.py").exists():
                    yield site / name


def _font_cache() -> Path | None:
    """matplotlib's list of this machine's fonts, if it was made already: making it takes seconds."""
    import matplotlib

    cached = sorted(Path(matplotlib.get_cachedir()).glob("fontlist-v*.json"))
    return cached[-1] if cached else None


def filter_file() -> int:
    """A descriptor from which bubblewrap reads the filter of system calls."""
    file = tempfile.TemporaryFile()  # noqa: SIM115  (the caller closes the descriptor)
    file.write(seccomp.seccomp_filter())
    file.flush()
    file.seek(0)
    descriptor = os.dup(file.fileno())
    file.close()
    return descriptor
