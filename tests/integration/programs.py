# SPDX-License-Identifier: Apache-2.0
"""Programs beside the daemon: the one that uses the client library, and mlkemctl."""

import os
import subprocess
import threading

from daemon import REPORT, SLOW

CLIENT_LOOP = os.environ["MLKEMD_CLIENT_LOOP"]
CTL = os.environ["MLKEMD_CTL"]
HELPERS = os.environ["MLKEMD_HELPERS"]
NO_MEMFD_SECRET = os.path.join(HELPERS, "no_memfd_secret")
MEMSCAN = os.path.join(HELPERS, "memscan")


class ClientLoop:
    """A long-lived process that uses libmlkemclient (client_loop.c). Whoever names no
    deadline has one that a busy machine keeps."""

    def __init__(self, path, *args, env=None):
        if not any(isinstance(arg, int) for arg in args):
            args += (20_000_000,)
        self.process = subprocess.Popen(
            [CLIENT_LOOP, path, *map(str, args)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, **(env or {})))
        self.errors = []
        self.drain = threading.Thread(target=self.read_errors, daemon=True)
        self.drain.start()
        self.first = self.process.stdout.readline().strip()

    def read_errors(self):
        for line in self.process.stderr:
            self.errors.append(line)

    def __enter__(self):
        assert self.first == "ready", (self.first, self.errors)
        return self

    def __exit__(self, kind, *unused):
        self.process.stdin.close()
        try:
            status = self.process.wait(30 * SLOW)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = "it did not end"
        self.drain.join(5)
        text = "".join(self.errors)
        assert not REPORT.search(text.encode()), text
        if kind is None:
            assert status == 0, (status, text)

    @property
    def pid(self):
        return self.process.pid

    def start(self, command):
        """Sends a command; its answer is read by answer()."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, ("it ended", self.process.poll(), self.errors)
        return line.strip()

    def __call__(self, command):
        self.start(command)
        return self.answer()

    def lines(self, command):
        """For a command with several lines, the last of which is "end"."""
        self.start(command)
        out = []
        while (line := self.answer()) != "end":
            out.append(line)
        return out


def ctl(path, *args, input_=None, timeout=60 * SLOW, **more):
    return subprocess.run([CTL, *args, "--socket", path], input=input_, timeout=timeout,
                          capture_output=True, **more)
