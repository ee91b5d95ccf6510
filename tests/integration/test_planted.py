# SPDX-License-Identifier: Apache-2.0
"""What the daemon does when its own arithmetic or randomness is broken (fate four): it
does not start, or stops, and says why. Only in a build with -Dtest-hooks=true."""

import os

import pytest

from daemon import SLOW, Daemon, StartFailed, wait_for
from peer import Closed, Peer, exchange, pb

pytestmark = pytest.mark.skipif(os.environ.get("MLKEMD_TEST_HOOKS") != "1",
                                reason="needs a build with -Dtest-hooks=true")
STEPS = ["keygen", "encaps", "decaps", "reject", "x25519", "hybrid"]
EXIT_BROKEN = 3


@pytest.mark.parametrize("fault", [f"selftest-{step}" for step in STEPS])
def test_planted_wrong_constant(fault):
    """No READY, an exit status of its own, and the step's name in the log."""
    with pytest.raises(StartFailed) as failed:
        Daemon(env={"MLKEMD_FAULT": fault})
    assert failed.value.status == EXIT_BROKEN
    assert fault.split("-")[1] in failed.value.log, failed.value.log
    assert "ready" not in failed.value.log


def stops(settings, fault):
    """The log of a daemon that starts or not, and then ends with EXIT_BROKEN."""
    try:
        daemon = Daemon(settings, env={"MLKEMD_FAULT": fault})
    except StartFailed as failed:
        assert failed.status == EXIT_BROKEN
        return failed.log
    try:
        wait_for(lambda: not daemon.alive(), 20 * SLOW, "it stops")
        assert daemon.process.returncode == EXIT_BROKEN
        daemon.ended_on_purpose = True
        return daemon.log()
    finally:
        daemon.__exit__(None)


@pytest.mark.parametrize("fault", ["rng-fail"])
def test_planted_randomness(fault):
    """A generator that fails: no weak key and no service; the first key that the pool
    wants ends the daemon."""
    assert "random" in stops({}, fault)


@pytest.mark.parametrize("fault", ["rng-fail"])
def test_planted_randomness_without_a_pool(fault):
    """Then it is the first client's request that shows it: no answer with a key."""
    with Daemon({"pool.enabled": "no"}, env={"MLKEMD_FAULT": fault}) as daemon:
        with Peer(daemon.path) as peer:
            try:
                answer = peer.call("generate_keys", algorithm=pb.ML_KEM_768, count=2)
                assert not any(i.share or i.handle for i in answer.keys.items)
                assert answer.status != pb.OK or all(
                    i.status == pb.INTERNAL for i in answer.keys.items)
            except Closed:
                pass
        wait_for(lambda: not daemon.alive(), 20 * SLOW, "it stops")
        assert daemon.process.returncode == EXIT_BROKEN
        daemon.ended_on_purpose = True


@pytest.mark.parametrize("fault", ["keypool-corrupt-pair"])
def test_planted_pair(fault):
    """With pairwise-check = pool a pair whose halves do not fit stops the daemon; it
    never leaves the pool."""
    assert "pair" in stops({"kem.pairwise-check": "pool"}, fault)


def test_without_a_fault_the_same_daemon_serves():
    with Daemon({"kem.pairwise-check": "pool"}) as daemon:
        daemon.wait_pool()
        exchange(daemon.path, pb.X25519MLKEM768, 64)
        assert daemon.admin("self_test").self_test.passed


def test_corrupt_pairs_without_the_check_are_given_out():
    """What the check is for: without it the two sides do not agree."""
    with Daemon({"pool.low-water": "100%"},
                env={"MLKEMD_FAULT": "keypool-corrupt-pair"}) as daemon:
        daemon.wait_pool()
        with pytest.raises((AssertionError, Closed)):
            for _ in range(40):
                exchange(daemon.path, pb.X25519MLKEM768, 64)
        with Peer(daemon.path) as peer:
            assert peer.call("ping").status == pb.OK
