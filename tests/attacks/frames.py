"""Speaking to the grader directly: frames that no honest child sends."""

from __future__ import annotations

from attacks.casebook import answer, body

LINK = """
import gc, json, os, struct, sys, threading, time
link = next(o for o in gc.get_objects() if type(o).__name__ == "Link")
def frame(tree, payload=b""):
    header = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    return struct.pack("<IQ", len(header), len(payload)) + header + payload
def nonce():
    f = sys._getframe(1)
    while "request" not in f.f_locals or "link" not in f.f_locals:
        f = f.f_back
    return f.f_locals["request"]["nonce"]
def reply(number, **fields):
    return frame({"$": "map", "items": [["nonce", number], *map(list, fields.items())]})
"""


@answer("cheat", only_ours=True)
def answers_for_the_next_check() -> str:
    """Sends replies to questions that were not asked yet, with what it hopes are right values."""
    return body("for n in range(50): link._socket.sendall(reply(nonce() + n, value=0.0))\ntime.sleep(0.1)", LINK)


@answer("cheat", only_ours=True)
def says_that_it_passed() -> str:
    """Replies with a verdict of its own."""
    return body(
        "link._socket.sendall(reply(nonce(), passed=True, score=100.0, status='passed', value=True))\nos._exit(0)", LINK
    )


@answer("cheat", only_ours=True)
def replies_twice() -> str:
    """Replies twice to one question, so that the second counts for the next."""
    return body("link._socket.sendall(reply(nonce(), value=0.0) * 2)\ntime.sleep(0.2)", LINK)


@answer("cheat", only_ours=True)
def replies_late() -> str:
    """Lets its time run out, and replies in the next question's time."""
    return body(
        """
        late = reply(nonce(), value=0.0)
        threading.Timer(1.2, lambda: link._socket.sendall(late)).start()
        time.sleep(60)
        """,
        LINK,
    )


@answer("harm", only_ours=True)
def promises_a_huge_frame() -> str:
    """Announces a frame of exabytes."""
    return body("link._socket.sendall(struct.pack('<IQ', 2**32 - 1, 2**63))\ntime.sleep(60)", LINK)


@answer("harm", only_ours=True)
def sends_a_deep_header() -> str:
    """Sends JSON that nests a million deep."""
    return body("link._socket.sendall(frame(b'[' * 1_000_000))\ntime.sleep(60)", LINK)


@answer("harm", only_ours=True)
def sends_a_bomb() -> str:
    """Sends four megabytes that would become gigabytes of objects."""
    return body("link._socket.sendall(frame(b'[' + b'{},' * 1_300_000 + b'0]'))\ntime.sleep(60)", LINK)


@answer("harm", only_ours=True)
def sends_impossible_numbers() -> str:
    """Sends numbers that are infinite or take a minute to read."""
    return body(
        'link._socket.sendall(frame(b\'{"$":"int","value":1e999}\'))\nlink._socket.sendall(frame(b\'9\' * 4_000_000))\n'
        "time.sleep(60)",
        LINK,
    )


@answer("harm", only_ours=True)
def sends_arrays_that_overlap() -> str:
    """Sends arrays with wrong offsets, shapes and dtypes."""
    table = '{"0":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,16]},' + (
        '"1":{"dtype":"F64","shape":[2],"data_offsets":[8,24]}}'
    )
    return body(
        f"table = {table!r}.encode()\npayload = struct.pack('<Q', len(table)) + table + bytes(24)\n"
        "link._socket.sendall(frame({'$': 'array', 'name': '0'}, payload))\ntime.sleep(60)",
        LINK,
    )


@answer("cheat", only_ours=True)
def sends_strange_dtypes() -> str:
    """Sends arrays of types and shapes that NumPy does not have, another at each call."""
    return body(
        """
        count.append(1)
        dtype = ["BF16", "PICKLE", "O", "F64", "F64", "F64"][len(count) % 6]
        shape = [[2], [1], [1], [-1], [0.5], "2"][len(count) % 6]
        table = json.dumps({"0": {"dtype": dtype, "shape": shape, "data_offsets": [0, 8]}}).encode()
        items = [["nonce", nonce()], ["value", {"$": "array", "name": "0"}]]
        payload = struct.pack("<Q", len(table)) + table + bytes(8)
        link._socket.sendall(frame({"$": "map", "items": items}, payload))
        time.sleep(60)
        """,
        LINK + "count = []",
    )


@answer("cheat", only_ours=True)
def sends_wrong_lengths() -> str:
    """Says that its frame is shorter than it is, so that the rest counts as the next reply."""
    return body(
        "link._socket.sendall(struct.pack('<IQ', 2, 0) + b'{}' + reply(nonce() + 1, value=0.0))\nreturn 0.0", LINK
    )


@answer("harm", only_ours=True)
def sends_one_byte_at_a_time() -> str:
    """Keeps the grader waiting, a byte now and then."""
    return body("while True:\n    link._socket.sendall(b'\\0')\n    time.sleep(0.2)", LINK)


@answer("harm", only_ours=True)
def closes_the_line() -> str:
    """Closes its end and lives on."""
    return body("link._socket.shutdown(2)\nos.closerange(3, 50)\ntime.sleep(60)", LINK)


@answer("harm", only_ours=True)
def sends_descriptors() -> str:
    """Sends open files, credentials and out-of-band bytes along with its frames."""
    return body(
        """
        import socket
        pairs = [socket.socketpair() for _ in range(8)]
        socket.send_fds(link._socket, [b"x"], [s.fileno() for pair in pairs for s in pair])
        link._socket.send(b"!", socket.MSG_OOB)
        time.sleep(60)
        """,
        LINK,
    )


@answer("harm", only_ours=True)
def listens_to_nothing() -> str:
    """Reads no more questions, so that sending them never ends."""
    return body(
        "threading.Thread(target=lambda: [link._socket.recv(1) for _ in range(10**6)]).start()\nreturn 0.0", LINK
    )


@answer("cheat")
def speaks_half_characters() -> str:
    """Sends names and texts that no file can hold."""
    return body("raise type('E\\ud800', (Exception,), {})('\\udfff' * 100 + '\\x1b[2J\\x00')")
