"""The system calls that a kernel in the sandbox may not make, as a seccomp filter in the form that bubblewrap takes.

A second wall behind the namespaces. Denied are: looking into other processes; new namespaces and mounts; what would
outlive a submission (System V objects, message queues, keys; other processes' limits and priorities); memory that no
limit counts (memfd, anonymous shared memory, large socket buffers); every socket but Unix ones; and parts of the Linux
kernel that no notebook needs. See seccomp(2), and Linux's Documentation/userspace-api/seccomp_filter.rst.
"""

from __future__ import annotations

import errno
import platform
import socket
import struct
from dataclasses import dataclass

_NEW_NAMESPACES = 0x00000080 | 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
"""clone's CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""


@dataclass(frozen=True)
class Machine:
    """One processor's numbers: its AUDIT_ARCH_* and its system calls."""

    audit_arch: int
    clone: int
    socket: int
    prlimit64: int
    mmap: int
    setsockopt: int
    denied: dict[str, int]


_SAME_EVERYWHERE = {
    "pidfd_getfd": 438,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "mount_setattr": 442,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "memfd_secret": 447,
}

MACHINES = {
    "x86_64": Machine(
        audit_arch=0xC000003E,
        clone=56,
        socket=41,
        prlimit64=302,
        mmap=9,
        setsockopt=54,
        denied=_SAME_EVERYWHERE
        | {
            **{"ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312},
            **{"unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161},
            **{"shmget": 29, "shmat": 30, "shmctl": 31, "semget": 64, "semop": 65, "semctl": 66, "semtimedop": 220},
            **{"msgget": 68, "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mq_open": 240, "mq_unlink": 241},
            **{"add_key": 248, "request_key": 249, "keyctl": 250, "memfd_create": 319},
            **{"bpf": 321, "perf_event_open": 298, "userfaultfd": 323, "fanotify_init": 300},
            **{"name_to_handle_at": 303, "open_by_handle_at": 304, "personality": 135, "modify_ldt": 154},
            **{"sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setattr": 314, "ioprio_set": 251},
            **{"setpriority": 141, "sched_setparam": 142},
        },
    ),
    "aarch64": Machine(
        audit_arch=0xC00000B7,
        clone=220,
        socket=198,
        prlimit64=261,
        mmap=222,
        setsockopt=208,
        denied=_SAME_EVERYWHERE
        | {
            **{"ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272},
            **{"unshare": 97, "setns": 268, "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51},
            **{"shmget": 194, "shmat": 196, "shmctl": 195, "semget": 190, "semop": 193, "semctl": 191},
            **{"semtimedop": 192, "msgget": 186, "msgsnd": 189, "msgrcv": 188, "msgctl": 187},
            **{"mq_open": 180, "mq_unlink": 181, "add_key": 217, "request_key": 218, "keyctl": 219},
            **{"memfd_create": 279, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282, "fanotify_init": 262},
            **{"name_to_handle_at": 264, "open_by_handle_at": 265, "personality": 92},
            **{"sched_setaffinity": 122, "sched_setscheduler": 119, "sched_setattr": 274, "ioprio_set": 30},
            **{"setpriority": 140, "sched_setparam": 118},
        },
    ),
}
CLONE3 = 435
"""Its flags lie in memory, where a filter can't look; without it, the C library uses clone."""

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06  # BPF_LD | BPF_W | BPF_ABS; BPF_ALU | BPF_AND | BPF_K; BPF_RET | BPF_K
_EQUAL, _AT_LEAST = 0x15, 0x35  # BPF_JMP | BPF_JEQ | BPF_K; BPF_JMP | BPF_JGE | BPF_K
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCH = 0, 4  # offsets in struct seccomp_data
_ARGUMENTS = tuple(16 + 8 * place for place in range(6))  # the low half of each
_X32 = 0x40000000
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
"""Together: memory that belongs to no process and no folder, so that no limit counts it."""
_BUFFER_SIZES = (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33)
"""And SO_SNDBUFFORCE, SO_RCVBUFFORCE: what lies in a socket is counted nowhere either."""


def seccomp_filter(machine: str = "") -> bytes:
    """The filter for a machine as `platform.machine()` names it, this one by default. Raises KeyError on others."""
    numbers = MACHINES[machine or platform.machine()]
    program = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, numbers.audit_arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),  # x86-64's second set of numbers for the same calls
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        *_unless(CLONE3, errno.ENOSYS),
    ]
    for number in sorted(numbers.denied.values()):
        program += _unless(number, errno.EPERM)
    program += [
        *_only_if(numbers.clone, 0, (0,), errno.EPERM, mask=_NEW_NAMESPACES),
        *_only_if(numbers.socket, 0, (socket.AF_UNIX,), errno.EAFNOSUPPORT),
        *_only_if(numbers.prlimit64, 0, (0,), errno.EPERM),  # one's own limits; the warm process has the same user
        *_only_if(numbers.mmap, 3, (0, _MAP_SHARED, _MAP_ANONYMOUS), errno.EPERM, mask=_MAP_SHARED | _MAP_ANONYMOUS),
        *_unless_argument(numbers.setsockopt, 2, _BUFFER_SIZES, errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _only_if(
    number: int, argument: int, values: tuple[int, ...], error: int, mask: int = 0xFFFFFFFF
) -> list[tuple[int, int, int, int]]:
    """Refuse this call with this error unless the argument, or the bits of it in the mask, is one of these values."""
    checks = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    block = [(_LOAD, 0, 0, _ARGUMENTS[argument]), (_AND, 0, 0, mask), *checks, (_RETURN, 0, 0, _ERRNO | error)]
    return [(_EQUAL, 0, len(block) + 1, number), *block, (_RETURN, 0, 0, _ALLOW)]


def _unless_argument(
    number: int, argument: int, values: tuple[int, ...], error: int
) -> list[tuple[int, int, int, int]]:
    """Refuse this call with this error if the argument is one of these values."""
    checks = [(_EQUAL, len(values) - place, 0, value) for place, value in enumerate(values)]
    block = [(_LOAD, 0, 0, _ARGUMENTS[argument]), *checks, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _ERRNO | error)]
    return [(_EQUAL, 0, len(block), number), *block]


def _unless(number: int, error: int) -> list[tuple[int, int, int, int]]:
    """Refuse this call with this error, and go on for every other."""
    return [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]
