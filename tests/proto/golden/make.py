#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How the golden frames were made: by Google's encoder, not by the one under test.

Run by hand when a field is added, never by the tests: a frame that exists must not
change. It refuses to overwrite one; new frames get new names.

    make.py DIRECTORY       protoc and python3-protobuf are needed
"""
import importlib
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
PROTO = HERE.parents[2] / "proto"


def load_schema():
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(
            ["protoc", f"--proto_path={PROTO}", f"--python_out={out}", "mlkemd.proto"],
            check=True)
        sys.path.insert(0, out)
        return importlib.import_module("mlkemd_pb2")


def pattern(length, first):
    """length bytes that count up from first; check_golden.c has the same."""
    return bytes((first + i) & 0xFF for i in range(length))


def requests(pb):
    yield "request-hello", pb.Request(id=1, hello=pb.Hello(
        min_version=1, max_version=1, client_name="golden", fallbacks=3))
    yield "request-hello-auto", pb.Request(id=1, hello=pb.Hello(
        min_version=1, max_version=1, client_name="golden", fallbacks=3, auto_daemon=700,
        auto_local=5))
    yield "request-ping", pb.Request(id=2, ping=pb.Ping())
    yield "request-info", pb.Request(id=3, timeout_us=250000, info=pb.Info())
    yield "request-generate-keys", pb.Request(id=4, timeout_us=1000000,
        generate_keys=pb.GenerateKeys(algorithm=pb.X25519MLKEM768, count=64))
    yield "request-generate-keys-export", pb.Request(id=5,
        generate_keys=pb.GenerateKeys(
            algorithm=pb.ML_KEM_512, count=1, export_private=True))
    yield "request-encapsulate", pb.Request(id=6, timeout_us=1000000,
        encapsulate=pb.Encapsulate(
            algorithm=pb.X25519MLKEM768, shares=[pattern(1216, 1), pattern(1216, 2)]))
    yield "request-encapsulate-kdf", pb.Request(id=7, encapsulate=pb.Encapsulate(
        algorithm=pb.ML_KEM_1024, shares=[pattern(1568, 3)],
        kdf=pb.Kdf(hash=pb.HKDF_SHA256, salt=pattern(32, 4), info=b"golden",
                   length=48)))
    yield "request-decapsulate", pb.Request(id=2**64 - 1, decapsulate=pb.Decapsulate(
        algorithm=pb.X25519MLKEM768, items=[
            pb.DecapsulateItem(handle=pattern(16, 5), ciphertext=pattern(1120, 6)),
            pb.DecapsulateItem(handle=pattern(16, 7), ciphertext=pattern(1120, 8))]))
    yield "request-decapsulate-key-kdf", pb.Request(id=9, decapsulate=pb.Decapsulate(
        algorithm=pb.ML_KEM_768, items=[
            pb.DecapsulateItem(private_key=pattern(64, 9),
                               ciphertext=pattern(1088, 10))],
        kdf=pb.Kdf(hash=pb.HKDF_SHA384, info=b"golden", length=32)))
    yield "request-release", pb.Request(id=10, release=pb.Release(
        handles=[pattern(16, 11), pattern(16, 12)]))
    yield "request-cancel", pb.Request(id=11, cancel=pb.Cancel(id=10))
    yield "request-stats", pb.Request(id=12, stats=pb.Stats())
    yield "request-drain", pb.Request(id=13, drain=pb.Drain())
    yield "request-resume", pb.Request(id=14, resume=pb.Resume())
    yield "request-reload", pb.Request(id=15, reload=pb.Reload())
    yield "request-self-test", pb.Request(id=16, self_test=pb.SelfTest())


def responses(pb):
    limits = pb.Limits(max_items=64, max_frame_bytes=524288, max_kdf_bytes=65536,
        max_handles=1024, handle_lifetime_ms=60000, default_timeout_us=1000000,
        export_allowed=True)
    algorithms = [pb.ML_KEM_512, pb.ML_KEM_768, pb.ML_KEM_1024, pb.X25519MLKEM768]
    load = pb.Load(batch_fill_milli=6250, service_us=180)
    yield "response-hello", pb.Response(id=1, load=load, hello=pb.HelloResult(version=1,
        server_version="0.1.0", connection=7, backend="generic", algorithms=algorithms,
        limits=limits))
    yield "response-pong", pb.Response(id=2, load=load)
    yield "response-info", pb.Response(id=3, load=load, info=pb.InfoResult(
        server_version="0.1.0", backend="generic", lanes=1, secret_memory="mlock",
        algorithms=algorithms, limits=limits, shards=2, shard=1, uptime_s=86400,
        pool_hybrid=1024, pool_mlkem768=256, pool_x25519=1000))
    yield "response-keys", pb.Response(id=4, load=load, keys=pb.KeysResult(items=[
        pb.KeyItem(share=pattern(1216, 21), handle=pattern(16, 22)),
        pb.KeyItem(status=pb.RESOURCE_EXHAUSTED, message="1024 handles are live")]))
    yield "response-keys-export", pb.Response(id=5, keys=pb.KeysResult(items=[
        pb.KeyItem(share=pattern(800, 23), private_key=pattern(1632, 24))]))
    yield "response-encapsulated", pb.Response(id=6, load=load,
        encapsulated=pb.EncapsulateResult(items=[
            pb.EncapsulatedItem(ciphertext=pattern(1120, 25), secret=pattern(64, 26)),
            pb.EncapsulatedItem(status=pb.BAD_SHARE, message="modulus check")]))
    yield "response-decapsulated", pb.Response(id=2**64 - 1, load=load,
        decapsulated=pb.DecapsulateResult(items=[
            pb.DecapsulatedItem(secret=pattern(64, 27)),
            pb.DecapsulatedItem(status=pb.KEY_NOT_FOUND, message="no such key")]))
    yield "response-released", pb.Response(id=10, released=pb.ReleaseResult(released=2))
    yield "response-stats", pb.Response(id=12, stats=pb.StatsResult(counters=[
        pb.Counter(name="requests_total", value=2**40), pb.Counter(name="handles")]))
    yield "response-self-test", pb.Response(id=16, self_test=pb.SelfTestResult(
        passed=False, backend="generic", failed_step="reject"))
    yield "response-denied", pb.Response(id=1, status=pb.DENIED,
        message="uid 1000 is not allowed")
    yield "response-draining", pb.Response(id=8, status=pb.DRAINING,
        load=pb.Load(draining=True))


def main():
    directory = pathlib.Path(sys.argv[1])
    pb = load_schema()
    for make in (requests, responses):
        for name, message in make(pb):
            path = directory / f"{name}.bin"
            if path.exists():
                print(f"{path} exists: left alone")
                continue
            data = message.SerializeToString(deterministic=True)
            path.write_bytes(len(data).to_bytes(4, "big") + data)


if __name__ == "__main__":
    main()
