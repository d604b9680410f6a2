"""The filter of system calls: the numbers are Linux's own, and the program decides as it says."""

from __future__ import annotations

import errno
import re
import struct
from pathlib import Path

import pytest

from autograder.kernels.seccomp import CLONE3, MACHINES, seccomp_filter

HEADERS = {
    "x86_64": ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
LOAD, AND, RETURN, EQUAL, AT_LEAST = 0x20, 0x54, 0x06, 0x15, 0x35


def decide(program: bytes, architecture: int, number: int, arguments: tuple[int, ...] = ()) -> int:
    """What the program returns for a call; a small interpreter of classic BPF, written from Linux's documentation."""
    six = (*arguments, *(0,) * (6 - len(arguments)))
    data = struct.pack("=IIQ6Q", number, architecture, 0, *six)
    place, accumulator = 0, 0
    while True:
        code, if_true, if_false, k = struct.unpack_from("=HBBI", program, 8 * place)
        place += 1
        if code == LOAD:
            (accumulator,) = struct.unpack_from("=I", data, k)
        elif code == AND:
            accumulator &= k
        elif code == RETURN:
            return int(k)
        else:
            place += if_true if (accumulator == k if code == EQUAL else accumulator >= k) else if_false
            assert code in (EQUAL, AT_LEAST)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_are_those_of_linux(machine: str) -> None:
    """Against the system's own header; calls that are newer than it are left out, and they are few."""
    header = next((Path(path) for path in HEADERS[machine] if Path(path).exists()), None)
    if header is None:
        pytest.skip(f"Linux's headers for {machine} are not installed (linux-libc-dev)")
    text = header.read_text(encoding="utf-8")
    theirs = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$", text, re.M)}
    numbers = MACHINES[machine]
    ours = numbers.denied | {
        **{"clone": numbers.clone, "socket": numbers.socket, "prlimit64": numbers.prlimit64},
        **{"mmap": numbers.mmap, "setsockopt": numbers.setsockopt, "clone3": CLONE3},
    }
    known = ours.keys() & theirs.keys()
    assert len(known) > 0.8 * len(ours)
    assert {name: ours[name] for name in known} == {name: theirs[name] for name in known}


@pytest.mark.parametrize("machine", MACHINES)
def test_every_denied_call_is_refused_and_others_pass(machine: str) -> None:
    """With the error that programs expect; on another architecture's numbers the process ends."""
    numbers, program = MACHINES[machine], seccomp_filter(machine)
    for name, number in numbers.denied.items():
        assert decide(program, numbers.audit_arch, number) == ERRNO | errno.EPERM, name
    assert decide(program, numbers.audit_arch, CLONE3) == ERRNO | errno.ENOSYS
    special = {numbers.clone, numbers.socket, numbers.prlimit64, numbers.mmap, numbers.setsockopt, CLONE3}
    for number in set(range(500)) - set(numbers.denied.values()) - special:
        assert decide(program, numbers.audit_arch, number) == ALLOW, number
    assert decide(program, 0x40000003, 1) == KILL  # 32-bit x86
    assert decide(program, numbers.audit_arch, 0x40000000 + 1) == ERRNO | errno.ENOSYS


ARGUMENTS = {
    "a thread": ("clone", (0x3D0F00,), ALLOW),
    "a fork": ("clone", (0x01200011,), ALLOW),
    "a user namespace": ("clone", (0x10000011,), ERRNO | errno.EPERM),
    "a mount namespace": ("clone", (0x00020011,), ERRNO | errno.EPERM),
    "a Unix socket": ("socket", (1, 1, 0), ALLOW),
    "a TCP socket": ("socket", (2, 1, 0), ERRNO | errno.EAFNOSUPPORT),
    "a virtual machine's socket": ("socket", (40, 1, 0), ERRNO | errno.EAFNOSUPPORT),
    "its own limits": ("prlimit64", (0, 7), ALLOW),
    "another's limits": ("prlimit64", (1, 7), ERRNO | errno.EPERM),
    "private memory": ("mmap", (0, 4096, 3, 0x22), ALLOW),
    "a shared file": ("mmap", (0, 4096, 3, 0x01), ALLOW),
    "a private file": ("mmap", (0, 4096, 3, 0x02), ALLOW),
    "anonymous shared memory": ("mmap", (0, 4096, 3, 0x21), ERRNO | errno.EPERM),
    "the same, validated": ("mmap", (0, 4096, 3, 0x23), ERRNO | errno.EPERM),
    "an option of a socket": ("setsockopt", (3, 1, 2), ALLOW),
    "a send buffer": ("setsockopt", (3, 1, 7), ERRNO | errno.EPERM),
    "a forced receive buffer": ("setsockopt", (3, 1, 33), ERRNO | errno.EPERM),
}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("call", "arguments", "decision"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_some_calls_depend_on_their_arguments(
    machine: str, call: str, arguments: tuple[int, ...], decision: int
) -> None:
    """Only the form that nobody honest needs is refused."""
    numbers = MACHINES[machine]
    assert decide(seccomp_filter(machine), numbers.audit_arch, getattr(numbers, call), arguments) == decision
