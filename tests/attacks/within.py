"""Run by path inside the box: nbgrader under limits, and afterwards what is left of it, as one line of JSON."""

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import time

GRACE_SECONDS = 3.0


def main() -> None:
    """Run the command given, which has so many seconds, in the folder given."""
    folder, log, seconds, limits, command = json.loads(sys.argv[1])
    for kind, most in limits.items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{kind}"), (most, most))
    os.chdir(folder)
    doors = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for door, address in zip(doors, (f"{folder}/socket", f"\0{folder}"), strict=True):
        door.bind(address)
        door.listen()
    code = _code(command, seconds, log)
    with contextlib.suppress(OSError):  # an attack may have removed it
        os.unlink(f"{folder}/socket")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(json.dumps({"code": code, "left": _left(), "peak": peak}))


def _code(command: list[str], seconds: float, log: str) -> int | None:
    """The exit code, or None where the command had to be ended."""
    with open(log, "wb") as told, open(os.devnull) as nothing:
        process = subprocess.Popen(
            command, stdin=nothing, stdout=told, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None


def _left() -> int:
    """How many processes live on, a while after."""
    until = time.monotonic() + GRACE_SECONDS
    while (others := _others()) and time.monotonic() < until:
        time.sleep(0.1)
    return len(others)


def _others() -> list[int]:
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            with open(f"/proc/{pid}/stat") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:
            continue  # it has ended meanwhile
        if pid not in (1, os.getpid(), os.getppid()) and state != "Z":
            found.append(pid)
    return found


if __name__ == "__main__":
    main()
