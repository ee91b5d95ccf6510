# SPDX-License-Identifier: Apache-2.0
"""Starts the real mlkemd on private sockets, watches it, and insists that it ends well.

stop() fails the test if the daemon died before, if it ended with another status than 0,
or if a sanitizer said anything.
"""

import os
import pathlib
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from peer import Peer, pb

MLKEMD = os.environ["MLKEMD_DAEMON"]
REPORT = re.compile(rb"(ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:"
                    rb"|Assertion .* failed).*")
SANITIZER = os.environ.get("MLKEMD_SANITIZER", "")
# Everything takes longer under a sanitizer.
SLOW = 4 if SANITIZER else 1
START_TIMEOUT_S = 30 * SLOW


def wait_for(condition, timeout, what):
    """Polls a condition: for what has no event to wait on. A busy machine has longer."""
    timeout = max(timeout, 60)
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"after {timeout} s still not: {what}"
        time.sleep(0.01)


class StartFailed(Exception):
    def __init__(self, status, log):
        super().__init__(f"mlkemd ended with {status}:\n{log}")
        self.status = status
        self.log = log


class Daemon:
    """One mlkemd. settings: {"section.key": value}; values are written as they are."""

    def __init__(self, settings=None, env=None, prefix=(), nofile=None, memlock=None,
                 args=(), umask=None, directory=None, wait=True, owner=None):
        self.own_directory = directory is None
        self.directory = pathlib.Path(directory or tempfile.mkdtemp(prefix="mlkemd-"))
        os.chmod(self.directory, 0o755)
        self.path = str(self.directory / "s.sock")
        self.control = str(self.directory / "c.sock")
        self.config = self.directory / "mlkemd.conf"
        self.log_path = self.directory / "log"
        self.settings = {"socket.path": self.path, "socket.control-path": self.control}
        self.settings.update(settings or {})
        self.path = self.settings["socket.path"]
        self.control = self.settings["socket.control-path"]
        self.write_config()
        if owner is not None:
            os.chown(self.directory, owner, owner)
        self.prefix = list(prefix)
        self.args = list(args)
        self.limits = {resource.RLIMIT_NOFILE: nofile, resource.RLIMIT_MEMLOCK: memlock}
        self.umask = umask
        self.env = dict(os.environ, **(env or {}))
        self.process = None
        self.ended_on_purpose = False
        self.start(wait)

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        try:
            self.stop(check=kind is None)
        finally:
            if self.own_directory:
                shutil.rmtree(self.directory, ignore_errors=True)

    def write_config(self):
        sections = {}
        for name, value in self.settings.items():
            section, key = name.split(".", 1)
            sections.setdefault(section, []).append(f"{key} = {value}")
        self.config.write_text("".join(
            f"[{section}]\n" + "\n".join(lines) + "\n\n"
            for section, lines in sections.items()))

    def reconfigure(self, **changes):
        for name, value in changes.items():
            self.settings[name.replace("__", ".").replace("_", "-")] = value
        self.write_config()

    def command(self):
        return self.prefix + [MLKEMD, "--config", str(self.config)] + self.args

    def prepare(self):
        for which, value in self.limits.items():
            if value is not None:
                resource.setrlimit(which, (value, value))
        if self.umask is not None:
            os.umask(self.umask)

    def start(self, wait=True):
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify_path = str(self.directory / f"n{os.getpid()}.{id(notify)}")
        notify.bind(notify_path)
        os.chmod(notify_path, 0o666)
        self.env["NOTIFY_SOCKET"] = notify_path
        self.ended_on_purpose = False
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, preexec_fn=self.prepare)
        try:
            if wait:
                self.wait_ready(notify)
        finally:
            notify.close()
            os.unlink(notify_path)

    def wait_ready(self, notify):
        end = time.monotonic() + START_TIMEOUT_S
        ready = select.poll()  # select() ends at descriptor 1024
        ready.register(notify, select.POLLIN)
        while time.monotonic() < end:
            if ready.poll(20):
                if b"READY=1" in notify.recv(4096).split(b"\n"):
                    return
            if self.process.poll() is not None:
                self.ended_on_purpose = True
                raise StartFailed(self.process.returncode, self.log())
        self.process.kill()
        raise StartFailed("no READY", self.log())

    @property
    def pid(self):
        """The daemon itself: a prefix such as setpriv has become it by exec."""
        return self.process.pid

    def log(self):
        return self.log_path.read_text(errors="replace")

    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        os.kill(self.pid, number)

    def freeze(self):
        """SIGSTOP; returns when every thread has stopped."""
        self.signal(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{self.pid}/task")
        wait_for(lambda: all(
            (task / "stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
            for task in tasks.iterdir()), 10 * SLOW, "stopped")

    def thaw(self):
        self.signal(signal.SIGCONT)

    def kill(self):
        """kill -9, as a crash would be."""
        self.ended_on_purpose = True
        self.process.kill()
        self.process.wait()

    def stop(self, check=True, timeout=30 * SLOW):
        if self.process is None:
            return
        died = not self.ended_on_purpose and self.process.poll() is not None
        status = self.process.returncode
        if self.process.poll() is None:
            self.process.terminate()
            # A test may have left it stopped.
            self.process.send_signal(signal.SIGCONT)
            try:
                status = self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                status = "no end after SIGTERM"
        log = self.log_path.read_bytes()
        found = REPORT.search(log)
        assert not found, log.decode(errors="replace")
        if check:
            assert not died, f"it died with {status}:\n{self.log()}"
            assert self.ended_on_purpose or status == 0, f"{status}\n{self.log()}"
        self.ended_on_purpose = True

    def peer(self, **more):
        return Peer(self.path, **more)

    def admin(self, op, **fields):
        with Peer(self.control) as peer:
            return peer.call(op, **fields)

    def stats(self):
        answer = self.admin("stats")
        assert answer.status == pb.OK, answer
        return {c.name: c.value for c in answer.stats.counters}

    def info(self):
        with self.peer() as peer:
            return peer.call("info").info

    def rss_kib(self):
        return status_kib(self.pid, "VmRSS")

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1]
        utime, stime = fields.split()[11:13]
        return (int(utime) + int(stime)) / os.sysconf("SC_CLK_TCK")

    def thread_states(self):
        """R: it runs, or would if the machine had time for it; S: it sleeps."""
        return {stat.read_text().rsplit(")", 1)[1].split()[0]
                for stat in pathlib.Path(f"/proc/{self.pid}/task").glob("*/stat")}

    def n_fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def wait_pool(self, kind="pool_hybrid", level=None):
        """Until the pool rests: its level does not change any more."""
        last = [-1]

        def rests():
            now = self.stats()[kind]
            same, last[0] = now == last[0], now
            if not same:
                time.sleep(0.1)
            return now >= level if level is not None else same
        wait_for(rests, 60 * SLOW, f"{kind} at rest")


def status_kib(pid, field):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise KeyError(field)
