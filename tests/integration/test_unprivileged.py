# SPDX-License-Identifier: Apache-2.0
"""The daemon as an ordinary user with the usual 8 MiB of RLIMIT_MEMLOCK, with
memfd_secret and with it refused; and with no way to lock memory at all."""

import os
import shutil

import pytest

from daemon import SANITIZER, Daemon, StartFailed
from peer import ALGORITHMS, exchange, pb
from programs import NO_MEMFD_SECRET, ClientLoop

NOBODY = 65534
MEMLOCK = 8 * 1024 * 1024
AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
             "--inh-caps=-all", "--bounding-set=-all"]
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"),
    reason="only root can start the daemon as another user")


def unprivileged(settings=None, prefix=(), **more):
    base = {"access.allow-users": "0"}
    base.update(settings or {})
    return Daemon(base, prefix=AS_NOBODY + list(prefix), memlock=MEMLOCK, owner=NOBODY,
                  **more)


def memfd_secret_here():
    with Daemon() as probe:
        return probe.info().secret_memory == "memfd_secret"


@needs_root
def test_as_an_ordinary_user():
    with unprivileged() as daemon:
        status = open(f"/proc/{daemon.pid}/status").read()
        assert f"Uid:\t{NOBODY}\t{NOBODY}" in status
        assert "CapEff:\t0000000000000000" in status
        assert daemon.info().secret_memory in ("memfd_secret", "mlock")
        for algorithm in ALGORITHMS:
            exchange(daemon.path, algorithm, 64)
        daemon.wait_pool("pool_hybrid", 1024 if not SANITIZER else 512)
        counters = daemon.stats()
        assert counters["secret_memory_bytes"] <= MEMLOCK
        # The client does not know this uid: it has to be told.
        with ClientLoop(daemon.path, "require") as client:
            assert client("exchange").startswith("error -14 ")


@needs_root
def test_with_memfd_secret_refused():
    """Locked memory instead, for the same 8 MiB, with an information in the log."""
    with unprivileged(prefix=[NO_MEMFD_SECRET]) as daemon:
        assert daemon.info().secret_memory == "mlock"
        assert "memfd_secret" in daemon.log()
        assert not [line for line in daemon.log().splitlines()
                    if line[:3] in ("<0>", "<1>", "<2>", "<3>", "<4>")], daemon.log()
        for algorithm in ALGORITHMS:
            exchange(daemon.path, algorithm, 64)
        daemon.wait_pool("pool_hybrid", 1024 if not SANITIZER else 512)
        locked = [int(line.split()[1]) for line in open(f"/proc/{daemon.pid}/status")
                  if line.startswith("VmLck:")][0]
        assert 0 < locked <= MEMLOCK // 1024


@needs_root
@pytest.mark.parametrize("policy", ["require", "prefer", "off"])
def test_no_locked_memory_at_all(policy):
    """Policies: require refuses the start and says why, prefer goes on and warns."""
    settings = {"daemon.secret-memory": policy}
    prefix = [NO_MEMFD_SECRET, "-m"]
    if policy == "require":
        with pytest.raises(StartFailed) as failed:
            unprivileged(settings, prefix)
        assert "secret memory" in failed.value.log and "MEMLOCK" in failed.value.log
        return
    with unprivileged(settings, prefix) as daemon:
        assert daemon.info().secret_memory == "off"
        assert policy == "off" or any(line.startswith("<4>")
                                      for line in daemon.log().splitlines())
        exchange(daemon.path)


@needs_root
def test_too_little_memlock():
    """64 KiB hold no arena: prefer goes on with what it has and says so."""
    try:
        with Daemon({"access.allow-users": "0"}, prefix=AS_NOBODY + [NO_MEMFD_SECRET],
                    memlock=64 * 1024, owner=NOBODY) as daemon:
            assert daemon.info().secret_memory == "off"
            exchange(daemon.path)
    except StartFailed as failed:
        assert "memlock" in failed.log.lower(), failed.log


@pytest.mark.parametrize("refused", [False, True])
def test_mode_is_told(refused):
    """In Info, as a counter and in one log line: the same everywhere."""
    prefix = [NO_MEMFD_SECRET] if refused else []
    with Daemon(prefix=prefix) as daemon:
        mode = daemon.info().secret_memory
        assert mode == "mlock" if refused else mode in ("memfd_secret", "mlock")
        assert mode in daemon.log()
        assert daemon.stats()["secret_memory_bytes"] > 256 * 1024
        exchange(daemon.path, pb.X25519MLKEM768, 8)


def test_secret_memory_is_not_for_others():
    """memfd_secret: not even root reads it through /proc. (Whether the arena holds
    secrets is what the wiping tests show, in the build that can look.)"""
    with Daemon() as daemon:
        if daemon.info().secret_memory != "memfd_secret":
            pytest.skip("no memfd_secret on this kernel")
        unreadable = 0
        with open(f"/proc/{daemon.pid}/maps") as maps, \
                open(f"/proc/{daemon.pid}/mem", "rb", 0) as mem:
            for line in maps:
                if "secretmem" not in line:
                    continue
                mem.seek(int(line.split("-")[0], 16))
                try:
                    mem.read(4096)
                except OSError:
                    unreadable += 1
        assert unreadable >= 1, "no mapping of secret memory found"
