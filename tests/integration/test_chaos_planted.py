# SPDX-License-Identifier: Apache-2.0
"""That test_chaos.py and test_surroundings.py can fail: faults planted in the daemon,
and what they see then.
"""

import contextlib
import http.client
import signal
import socket
import subprocess

import pytest

from chaos import Ledger
from daemon import Daemon
from peer import Peer
from scrape import ask
from test_chaos import Scene, run, seed_of_this_run, wedged
from test_surroundings import (Clocks, crowd, no_more_memory, no_sanitizer,
                               with_few_descriptors, with_one_arena)


@pytest.mark.parametrize("fault", ["place-blind"])
def test_planted_who_is_placed_blindly_waits(fault):
    with Daemon({"daemon.shards": "2"}, env={"MLKEMD_FAULT": fault}) as daemon:
        with wedged(daemon), pytest.raises(socket.timeout):
            Peer(daemon.path, timeout=2.0)


@pytest.mark.parametrize("fault", ["descriptors-to-the-last"])
def test_planted_a_crowd_takes_all_descriptors(fault):
    address, daemon = with_few_descriptors(fault)
    with daemon:
        peers = crowd(daemon, 70, timeout=0.1)
        with pytest.raises(OSError):
            ask(address, "/healthz", timeout=2)
        for peer in peers:
            peer.close()


@no_sanitizer
@pytest.mark.parametrize("fault", ["metrics-http-no-reserve"])
def test_control_a_scrape_without_memory_is_the_end(fault):
    """What the allocation meets is the heap's to choose: more than one daemon is tried."""
    for _ in range(10):
        address, daemon = with_one_arena(fault)
        with daemon:
            peers = no_more_memory(daemon)
            for _ in range(20):
                with contextlib.suppress(OSError, http.client.HTTPException):
                    ask(address, "/healthz", timeout=1)
            try:
                status = daemon.process.wait(2)
            except subprocess.TimeoutExpired:
                daemon.kill()
                continue
            finally:
                for peer in peers:
                    peer.close()
            daemon.ended_on_purpose = True
            assert status == -signal.SIGSEGV
            return
    pytest.skip("the heap of this machine had room for each scrape")


def test_control_keys_that_come_again_are_noticed():
    """With known randomness every daemon makes the keys of the one before."""
    ledger = Ledger()
    with Clocks() as clocks:
        scene = Scene(clocks, seed_of_this_run(), env={"MLKEMD_TEST_RANDOM": "again"})
        with scene.daemon:
            run(scene, ledger, ["kill"], 60, nuisance=False)
    assert any("handed out twice" in error for error in ledger.errors), ledger.errors
