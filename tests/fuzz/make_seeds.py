#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets: small inputs that reach each part.

  MLKEMD_PROTO_DIR=BUILD/tests/integration make_seeds.py SEEDS

They are made from the schema alone and are the same each time. What a fuzzer finds is
added by hand under a name that says what it showed.
"""

import os
import pathlib
import random
import struct
import sys

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / ".." / "integration"))

from peer import frame, item, pb  # noqa: E402

choose = random.Random(1)


def request(op, id_=1, **fields):
    out = pb.Request(id=id_)
    target = getattr(out, op)
    target.SetInParent()
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(target, name).extend(value)
        elif isinstance(value, pb.Kdf):
            getattr(target, name).CopyFrom(value)
        else:
            setattr(target, name, value)
    return out


HELLO = request("hello", min_version=1, max_version=1, client_name="seed")
KDF = pb.Kdf(hash=pb.HKDF_SHA256, salt=b"salt", info=b"info", length=42)
SEED_512, SEED_HYBRID = bytes(range(64)), bytes(range(96))
MESSAGES = {
    "hello": HELLO,
    "hello-none": request("hello"),
    "ping": request("ping", 2),
    "info": request("info", 3),
    "keygen": request("generate_keys", 4, algorithm=pb.ML_KEM_768, count=2),
    "keygen-export": request("generate_keys", 5, algorithm=pb.X25519MLKEM768, count=1,
                             export_private=True),
    "keygen-none": request("generate_keys", 5, algorithm=pb.ML_KEM_512),
    "keygen-many": request("generate_keys", 5, algorithm=pb.ML_KEM_512, count=2**31),
    "encaps": request("encapsulate", 6, algorithm=pb.ML_KEM_512, shares=[bytes(800)]),
    "encaps-kdf": request("encapsulate", 7, algorithm=pb.ML_KEM_512,
                          shares=[bytes(800), b"short"], kdf=KDF),
    "encaps-short": request("encapsulate", 7, algorithm=pb.X25519MLKEM768,
                            shares=[b"", b"x"]),
    "encaps-unknown": request("encapsulate", 7, algorithm=9999, shares=[b"x"]),
    "decaps-seed": request("decapsulate", 8, algorithm=pb.ML_KEM_512,
                           items=[item(bytes(768), private_key=SEED_512)] * 2),
    "decaps-handle": request("decapsulate", 9, algorithm=pb.ML_KEM_512,
                             items=[item(bytes(768), handle=bytes(16))]),
    "decaps-both": request("decapsulate", 9, algorithm=pb.ML_KEM_512, items=[
        item(bytes(768), handle=bytes(16), private_key=SEED_512), pb.DecapsulateItem()]),
    "decaps-kdf": request("decapsulate", 10, algorithm=pb.X25519MLKEM768, kdf=pb.Kdf(
        hash=pb.HKDF_SHA384, length=1000), items=[
            item(bytes(1088) + b"\x09" + bytes(31), private_key=SEED_HYBRID)]),
    "decaps-bad-kdf": request("decapsulate", 10, algorithm=pb.ML_KEM_512,
                              kdf=pb.Kdf(hash=7, length=2**31),
                              items=[item(b"x", handle=b"y")]),
    "release": request("release", 11, handles=[bytes(16), b"short", b""]),
    "cancel": request("cancel", 12, id=4),
    "stats": request("stats", 13),
    "drain": request("drain", 14),
    "self-test": request("self_test", 15),
    "many-items": request("decapsulate", 16, algorithm=pb.ML_KEM_512,
                          items=[pb.DecapsulateItem()] * 65),
}
# Bytes that no encoder writes; see tests/integration/test_frames.py for what each is.
ODD = {
    "two-operations": MESSAGES["ping"].SerializeToString() +
    MESSAGES["info"].SerializeToString(),
    "same-operation-twice": MESSAGES["decaps-seed"].SerializeToString() +
    MESSAGES["decaps-handle"].SerializeToString(),
    "unknown-field": MESSAGES["ping"].SerializeToString() + b"\xfa\x7c\x03abc",
    "absurd-tag": b"\xf8\xff\xff\xff\x7f\x00" + MESSAGES["ping"].SerializeToString(),
    "long-varint": b"\x08" + b"\xff" * 9 + b"\x01" + b"\x5a\x00",
    "too-long-varint": b"\x08" + b"\xff" * 10 + b"\x01",
    "group": b"\x0b\x0c",
    "truncated": MESSAGES["decaps-seed"].SerializeToString()[:-1],
    "empty-fields": b"\x08\x01\xaa\x01\x06\x12\x00\x12\x00\x1a\x00",
    "no-operation": b"\x08\x09",
    "id-ten-times": b"\x08\x01" * 10 + MESSAGES["ping"].SerializeToString(),
    "length-past-end": b"\xaa\x01\x7f\x12",
}
CONFIGS = {
    "empty": "",
    "all": "# a comment\n[socket]\npath = /tmp/a.sock\nmode = 0660\n\n[access]\n"
           "allow-users = 0, ?nobody, 65534\nallow-groups =\n[kem]\nbackend = generic\n"
           "export-private-keys = yes\npairwise-check = pool\n[pool]\nhybrid = 10\n"
           "low-water = 25%\nmax-age = 10s\n[limits]\nmax-connections = 10\n"
           "buffers = 4M\nhandle-lifetime = 100ms\n[daemon]\nshards = 2\n"
           "secret-memory = off\nlog-level = debug\n",
    "no-newline": "[pool]\nhybrid = 1",
    "crlf": "[pool]\r\nhybrid = 1\r\n",
    "spaces": "  [ pool ]  \n\t hybrid\t=\t 1 \t\n",
    "twice": "[pool]\nhybrid = 1\nhybrid = 2\n[pool]\nhybrid = 3\n",
    "unknown-key": "[pool]\nnonsense = 1\n",
    "unknown-section": "[nonsense]\n",
    "no-section": "hybrid = 1\n",
    "no-equals": "[pool]\nhybrid\n",
    "no-value": "[pool]\nhybrid =\n",
    "open-bracket": "[pool\nhybrid = 1\n",
    "huge": "[pool]\nhybrid = 99999999999999999999999999\n",
    "escape": "[pool]\nhybrid = \x1b[31m\x00\x7f\n",
    "long-line": "[pool]\nhybrid = " + "1" * 5000 + "\n",
    "long-path": "[socket]\npath = /" + "x" * 200 + "\n",
    "bad-user": "[access]\nallow-users = no-such-user-here\n",
    "bad-mode": "[socket]\nmode = 0999\n",
    "utf8": "[access]\nallow-users = ?é\n",
}


def write(folder, name, data):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def main():
    out = pathlib.Path(sys.argv[1])
    messages = {n: m.SerializeToString() for n, m in MESSAGES.items()}
    messages.update(ODD)
    for name, data in messages.items():
        write(out / "codec", name, data)
    for name, text in CONFIGS.items():
        write(out / "config", name, text.encode("latin-1"))

    everything = b"".join(frame(m) for m in messages.values())
    write(out / "frame", "all-in-one", b"\x00" + everything)
    write(out / "frame", "byte-by-byte", b"\x01" + everything[:3000])
    write(out / "frame", "in-sevens", b"\x07" + everything)
    write(out / "frame", "zero-length", b"\x00" + frame(HELLO) + bytes(4))
    write(out / "frame", "one-too-long", b"\x00" + struct.pack(">I", 512 * 1024 + 1))
    write(out / "frame", "limit-announced", b"\x00" + struct.pack(">I", 512 * 1024) +
          b"x" * 100)
    write(out / "frame", "all-ones", b"\x00" + b"\xff" * 64)
    write(out / "frame", "little-endian", b"\x00" + struct.pack("<I", 20) + bytes(20))

    hello = frame(HELLO)
    good = [n for n in MESSAGES if not n.startswith("hello")]
    for name in good:
        write(out / "conn", name, b"\x00" + hello + frame(MESSAGES[name]))
    write(out / "conn", "session", b"\x00" + hello + b"".join(
        frame(MESSAGES[n]) for n in good))
    write(out / "conn", "session-in-pieces", b"\x1d" + hello + b"".join(
        frame(MESSAGES[n]) for n in good))
    write(out / "conn", "no-hello", b"\x00" + frame(MESSAGES["ping"]))
    write(out / "conn", "half-hello", b"\x00" + hello[:6])
    write(out / "conn", "same-id", b"\x00" + hello + frame(MESSAGES["keygen"]) * 3)
    write(out / "conn", "pipeline", b"\x00" + hello + b"".join(frame(request(
        "generate_keys", 100 + n, algorithm=pb.ML_KEM_512, count=1)) for n in range(80)))
    write(out / "conn", "cancelled", b"\x00" + hello + frame(MESSAGES["keygen"]) +
          frame(MESSAGES["cancel"]))
    for name, data in ODD.items():
        write(out / "conn", "odd-" + name, b"\x00" + hello + frame(data) +
              frame(MESSAGES["ping"]))
    write(out / "conn", "zero-length", b"\x00" + hello + bytes(4))


if __name__ == "__main__":
    os.umask(0o022)
    main()
