# SPDX-License-Identifier: Apache-2.0
"""The service manager's side of the watchdog."""

import socket
import subprocess
import time

from daemon import SLOW, Daemon, wait_for


class Fed:
    """A daemon whose service manager we are; fed(seconds) counts WATCHDOG=1."""

    def __init__(self, tmp_path, settings=None, fault=""):
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notify.bind(str(tmp_path / "notify"))
        self.notify.settimeout(0.2)
        self.daemon = Daemon(settings, wait=False, env={"WATCHDOG_USEC": "5000000",
                                                        "MLKEMD_FAULT": fault})
        # Daemon listens for READY itself: this one is started once more, by us.
        self.daemon.kill()
        self.daemon.ended_on_purpose = False
        env = dict(self.daemon.env, NOTIFY_SOCKET=str(tmp_path / "notify"))
        with open(self.daemon.log_path, "ab") as log:
            self.daemon.process = subprocess.Popen(self.daemon.command(), env=env,
                                                   stderr=log, stdin=subprocess.DEVNULL)
        wait_for(lambda: "READY=1" in self.next(), 30 * SLOW, "READY")

    def next(self):
        try:
            return self.notify.recv(4096).decode()
        except socket.timeout:
            return ""

    def wait(self, n):
        """Until it was fed n times more."""
        wait_for(lambda: "WATCHDOG=1" in self.next(), 60 * SLOW, "WATCHDOG=1")
        if n > 1:
            self.wait(n - 1)

    def count(self, seconds):
        end, n = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            n += "WATCHDOG=1" in self.next()
        return n
