"""What a student might try, tried once in a real child before any student's code: run there as a notebook's cell.

Each question is a function that does what must not be possible; a wall stands where it fails. What it would do if there
were no wall is harmless.
"""

import _thread
import mmap
import os
import socket
from collections.abc import Callable
from pathlib import Path


def reads_our_files(canary: str, control: str, limits: dict[str, int]) -> None:
    Path(canary).read_bytes()


def writes_our_files(canary: str, control: str, limits: dict[str, int]) -> None:
    Path(canary).with_name("written").write_bytes(b"")


def writes_beside_its_folder(canary: str, control: str, limits: dict[str, int]) -> None:
    (Path.cwd().parent / "written").write_bytes(b"")


def lists_processes(canary: str, control: str, limits: dict[str, int]) -> None:
    os.listdir("/proc")


def opens_a_network_socket(canary: str, control: str, limits: dict[str, int]) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).close()


def asks_the_zygote(canary: str, control: str, limits: dict[str, int]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(control)


def starts_a_process(canary: str, control: str, limits: dict[str, int]) -> None:
    if os.fork() == 0:
        os._exit(0)


def becomes_another_program(canary: str, control: str, limits: dict[str, int]) -> None:
    try:
        os.execv("/nonexistent", ["nonexistent"])
    except FileNotFoundError:  # it was looked for
        return


def signals_its_parent(canary: str, control: str, limits: dict[str, int]) -> None:
    os.kill(os.getppid(), 0)


def becomes_another_user(canary: str, control: str, limits: dict[str, int]) -> None:
    os.setuid(os.getuid())


def takes_all_memory(canary: str, control: str, limits: dict[str, int]) -> None:
    mmap.mmap(-1, limits["memory"] + (1 << 30)).close()


def fills_the_disk(canary: str, control: str, limits: dict[str, int]) -> None:
    with open("large", "wb") as file:
        file.truncate(limits["file"] + 1)


def opens_files_without_end(canary: str, control: str, limits: dict[str, int]) -> None:
    descriptors = []
    try:
        for _ in range(limits["files"] + 1):
            descriptors.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def starts_threads_without_end(canary: str, control: str, limits: dict[str, int]) -> None:
    gate, before = _thread.allocate_lock(), _thread.stack_size(1 << 16)
    with gate:  # each waits here until all have started
        try:
            for _ in range(limits["processes"] + 1):
                _thread.start_new_thread(gate.acquire, ())
        finally:
            _thread.stack_size(before)


QUESTIONS: list[Callable[[str, str, dict[str, int]], None]] = [
    reads_our_files,
    writes_our_files,
    writes_beside_its_folder,
    lists_processes,
    opens_a_network_socket,
    asks_the_zygote,
    starts_a_process,
    becomes_another_program,
    signals_its_parent,
    becomes_another_user,
    takes_all_memory,
    fills_the_disk,
    opens_files_without_end,
    starts_threads_without_end,
]


def open_walls(canary: str, control: str, limits: dict[str, int]) -> list[str]:
    """The questions whose answer was not a refusal, in words."""
    found = []
    for question in QUESTIONS:
        try:
            question(canary, control, limits)
        except (OSError, RuntimeError, ValueError):
            continue
        found.append(f"it {question.__name__.replace('_', ' ')}")
    return found
