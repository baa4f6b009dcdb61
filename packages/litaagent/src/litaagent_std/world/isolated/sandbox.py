"""What an isolated agent's process may do: limits of the operating system, and namespaces where it has them.

On Linux the process lives in namespaces of its own: a file system that shows the Python installation, the folders of
``sys.path`` and a small scratch folder, all but the last read-only; no network; no other process; no capability. Where
namespaces are not available (another system, or a container that forbids them) limits of time, memory and file sizes
remain, and `missing` says so.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Limits", "drop_privileges", "enter_namespaces", "map_user", "set_limits", "unshare", "visible_paths"]

_NEW_NAMESPACES: Final = 0x10000000 | 0x00020000 | 0x40000000 | 0x20000000 | 0x08000000 | 0x04000000
"""User, mount, network, process, IPC and host name (``CLONE_NEW…``)."""

_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_PRIVATE = 2, 4, 16384, 1 << 18
_MNT_DETACH: Final = 2
_AT_FDCWD, _AT_RECURSIVE, _AT_EMPTY_PATH = -100, 0x8000, 0x1000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # system calls, the same on all architectures
_TREE_CLONE, _MOVE_EMPTY_PATH = 1, 4
_READ_ONLY: Final = 1 | 2 | 4  # MOUNT_ATTR_RDONLY, _NOSUID, _NODEV
_NOBODY: Final = 65534
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_SYSTEM: Final = (
    "/usr",
    "/lib",
    "/lib64",
    "/lib32",
    "/bin",
    "/opt/conda",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/nix",
)
_SCRATCH: Final = "/tmp"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an isolated agent's process.

    Attributes:
        call_seconds: Seconds for one call, as the league allows for a turn.
        load_seconds: Seconds for importing and constructing the agent.
        world_seconds: Seconds that all calls of a world may take together, and CPU seconds of the process.
        memory: Bytes of memory of each of its processes.
        files: Bytes of all its files together, which are in memory and vanish with it.
        processes: Processes and threads.
        message: Bytes of an answer.
    """

    call_seconds: float = 20.0
    load_seconds: float = 120.0
    world_seconds: float = 900.0
    memory: int = 2 << 30
    files: int = 16 << 20
    processes: int = 16
    message: int = 1 << 20


def set_limits(limits: Limits, *, alone: bool) -> None:
    """Set the limits of this process for good.

    Args:
        limits: The limits.
        alone: Whether the user namespace is its own; only there processes of others do not count.
    """
    import resource  # not on every system

    values = {
        resource.RLIMIT_CPU: int(limits.world_seconds),
        resource.RLIMIT_DATA: limits.memory,
        resource.RLIMIT_AS: 4 * limits.memory,
        resource.RLIMIT_FSIZE: limits.files,
        resource.RLIMIT_NOFILE: 128,
        resource.RLIMIT_CORE: 0,
    }
    if alone:
        values[resource.RLIMIT_NPROC] = limits.processes
    for name, value in values.items():
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with suppress(ValueError, OSError):  # a system that does not know this limit
            resource.setrlimit(name, (value, value))


def visible_paths(extra: Iterable[str] = ()) -> list[str]:
    """Return what an isolated agent may read: Python, the folders of ``sys.path``, and what its parameters name."""
    packages = (
        getattr(sys.modules.get(name), "__path__", ()) for name in ("litaagent_std", "apexrl", "scml", "negmas")
    )
    named = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, *(path for paths in packages for path in paths)]
    wanted = {os.path.abspath(path) for path in (*named, *extra) if path}
    wanted |= {os.path.realpath(path) for path in wanted}
    chosen: list[str] = [path for path in _SYSTEM if os.path.lexists(path)]
    for path in sorted(wanted):
        inside = any(path == kept or path.startswith(f"{kept}/") for kept in chosen)
        if path != "/" and not inside and os.path.exists(path):
            chosen.append(path)
    return chosen


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare() -> None:
    """Give this process, and what it forks, namespaces of its own.

    Raises:
        OSError: If the system has none, or forbids it.
    """
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} has no namespaces")
    with suppress(PermissionError):
        os.setgroups([])
    _check(_libc().unshare(_NEW_NAMESPACES), "unshare")


def map_user(pid: int) -> None:
    """Make root of a new user namespace an ordinary user outside: this one, or nobody where this one is root.

    Args:
        pid: A process in the namespace; this one is outside.

    Raises:
        OSError: If the system forbids it.
    """
    folder = Path(f"/proc/{pid}")
    outside = (os.geteuid(), os.getegid())
    all_may_read = bool(os.stat(os.__file__).st_mode & stat.S_IROTH)
    candidates = [(_NOBODY, _NOBODY), outside] if outside[0] == 0 and all_may_read else [outside]
    for number, (user, group) in enumerate(candidates):
        try:
            if user != _NOBODY:
                (folder / "setgroups").write_text("deny")
            (folder / "uid_map").write_text(f"0 {user} 1")
            (folder / "gid_map").write_text(f"0 {group} 1")
            return
        except OSError:
            if number == len(candidates) - 1:
                raise


def enter_namespaces(paths: Sequence[str], limits: Limits) -> None:
    """Leave the host's files behind: this process then sees `paths`, read-only, and a scratch folder.

    Raises:
        OSError: If the system forbids it.
    """
    libc = _libc()
    _check(libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None), "make mounts private")
    # the host's user may enter folders that the sandbox's user may not: what is to be seen is taken first
    links = {path: os.readlink(path) for path in paths if os.path.islink(path)}
    trees = {path: _take_tree(libc, path, path not in _DEVICES) for path in (*paths, *_DEVICES) if path not in links}
    folders = {path for path in trees if os.path.isdir(path)}
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
    _change_root(libc, limits)
    for path, target in links.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)
    for path, tree in trees.items():
        os.makedirs(path if path in folders else os.path.dirname(path), exist_ok=True)
        if path not in folders:
            Path(path).touch()
        _check(
            libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, ctypes.c_char_p(path.encode()), _MOVE_EMPTY_PATH),
            f"show {path}",
        )
        os.close(tree)
    os.makedirs(_SCRATCH, exist_ok=True)
    os.makedirs("/proc", exist_ok=True)
    if libc.mount(b"proc", b"/proc", b"proc", _MS_NOSUID | _MS_NODEV, None) == 0:
        with suppress(OSError):
            Path("/proc/sys/user/max_user_namespaces").write_text("0")
    _check(libc.umount2(b"/.old", _MNT_DETACH), "leave the old root")
    os.rmdir("/.old")
    os.chdir(_SCRATCH)


def _change_root(libc: ctypes.CDLL, limits: Limits) -> None:
    """Make a small file system in memory the root; the old one is at ``/.old``."""
    root = next(path for path in ("/tmp", "/var/tmp", "/mnt", "/run") if os.path.isdir(path))
    options = f"size={limits.files},mode=755".encode()
    _check(libc.mount(b"tmpfs", root.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, options), "mount the scratch folder")
    old = f"{root}/.old"
    os.mkdir(old)
    _check(libc.pivot_root(root.encode(), old.encode()), "change the root")
    os.chdir("/")


def _take_tree(libc: ctypes.CDLL, path: str, read_only: bool) -> int:
    """Return a descriptor of a copy of the mount at a path, for the new root."""
    tree = int(libc.syscall(_OPEN_TREE, _AT_FDCWD, ctypes.c_char_p(path.encode()), _TREE_CLONE | _AT_RECURSIVE))
    _check(min(tree, 0), f"take {path}")
    if read_only:
        attributes = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)  # set, clear, propagation, user namespace
        size = ctypes.c_size_t(ctypes.sizeof(attributes))
        flags = _AT_RECURSIVE | _AT_EMPTY_PATH
        _check(libc.syscall(_MOUNT_SETATTR, tree, b"", flags, ctypes.byref(attributes), size), f"protect {path}")
    return tree


def drop_privileges() -> None:
    """Give up every capability, also for programs that this process may start."""
    libc = _libc()
    for capability in range(64):
        if libc.prctl(24, capability, 0, 0, 0) != 0:  # PR_CAPBSET_DROP, up to the last one that there is
            break
    _check(libc.prctl(38, 1, 0, 0, 0), "give up privileges")  # PR_SET_NO_NEW_PRIVS
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # the version with 64 capabilities; this process
    _check(libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())), "give up capabilities")
