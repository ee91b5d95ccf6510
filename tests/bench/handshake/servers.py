# SPDX-License-Identifier: Apache-2.0
"""The programs that handshake.sh measures: mlkemd, nginx and HAProxy on loopback.

Each is a foreground process with its files in one folder, ended by its PID. Where nginx,
HAProxy and Debian 13's come from: tests/lib/proxies.sh.
"""

import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
START_S = 30
PROGRAM = "handshake.sh"  # who complains


def find_programs():
    """{"host": {"nginx": path, ...}, "debian-13": {...}}; what cannot be had is absent."""
    found = {}
    for kind, names in (("host", ["nginx", "haproxy"]),
                        ("debian-13", ["openssl", "nginx", "haproxy"])):
        out = subprocess.run([str(ROOT / "tests/lib/proxies.sh"), kind, *names],
                             stdout=subprocess.PIPE, text=True, check=False).stdout
        found[kind] = dict(line.split("\t", 1) for line in out.splitlines())
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"{PROGRAM}: after {seconds} s still not: {what}")
        time.sleep(0.01)


def accepts(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def cpu_ns(pid):
    """Processor time of all threads, by the scheduler's own account."""
    total = 0
    try:
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
    except (FileNotFoundError, ProcessLookupError):
        pass
    return total


def children(pid):
    out = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        out += [int(child) for child in (task / "children").read_text().split()]
    return out


STARTED = []  # every Process, from the moment that it runs


def stop_all():
    while STARTED:
        STARTED.pop().stop()


class Process:
    """A foreground process; its output goes to a log in its folder."""

    def __init__(self, directory, name, command, cpus, env=None, pass_fds=()):
        self.name, self.log = name, directory / f"{name}.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **(env or {})}, pass_fds=pass_fds,
                preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        STARTED.append(self)
        self.pid = self.process.pid

    def pids(self):
        return [self.pid]

    def cpu_us(self):
        return sum(cpu_ns(pid) for pid in self.pids()) / 1000

    def need(self, condition, what):
        def ended_or():
            if self.process.poll() is not None:
                sys.exit(f"{PROGRAM}: {self.name} ended with "
                         f"{self.process.returncode}:\n{self.log.read_text()[-2000:]}")
            return condition()
        wait_for(ended_or, START_S, what)

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(how)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Daemon(Process):
    def __init__(self, build, directory, cpus):
        self.build, self.directory, self.cpus = build, directory, cpus
        self.path, self.control = str(directory / "s.sock"), str(directory / "c.sock")
        (directory / "mlkemd.conf").write_text(
            f"[socket]\npath = {self.path}\ncontrol-path = {self.control}\n")
        self.start()

    def start(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
            path = self.directory / f"notify.{time.monotonic_ns()}"
            notify.bind(str(path))
            super().__init__(
                self.directory, "mlkemd",
                [str(self.build / "daemon/mlkemd"), "--config",
                 str(self.directory / "mlkemd.conf")],
                self.cpus, env={"NOTIFY_SOCKET": str(path)})
            self.need(lambda: select.select([notify], [], [], 0)[0] and
                      b"READY=1" in notify.recv(4096).split(b"\n"), "mlkemd is READY")

    def stats(self):
        """The counters, as a flat dict of numbers."""
        out = subprocess.run(
            [str(self.build / "tools/mlkemctl"), "stats", "--json", "--control-socket",
             self.control], stdout=subprocess.PIPE, text=True, check=True).stdout
        flat = {}
        for line in out.splitlines():
            flat.update(json.loads(line))
        return flat

    def settle(self):
        """Until it has filled its pool and sleeps."""
        last = -1
        end = time.monotonic() + 2
        while time.monotonic() < end:
            now = cpu_ns(self.pid)
            if now == last:
                return
            last = now
            time.sleep(0.02)


class Proxy(Process):
    """nginx or HAProxy, with a configuration written by proxies.py."""

    def __init__(self, directory, program, name, text, port, workers, cpus, env):
        self.workers = workers
        conf = directory / f"{name}.conf"
        conf.write_text(text)
        self.is_nginx = "nginx" in pathlib.Path(program).name
        command = ([program, "-p", str(directory), "-e", str(directory / f"{name}.err"),
                    "-c", str(conf)]
                   if self.is_nginx else [program, "-db", "-f", str(conf)])
        super().__init__(directory, name, command, cpus, env)
        self.need(lambda: accepts(port), f"{name} listens")
        if self.is_nginx:
            self.need(lambda: len(children(self.pid)) == workers, "its workers run")

    def pids(self):
        return children(self.pid) if self.is_nginx else [self.pid]

    def memory(self):
        """(KiB resident, KiB of it that are of no file, open descriptors) of the processes
        that do the work."""
        rss = anonymous = fds = 0
        for pid in self.pids():
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            rss += int(status.split("VmRSS:")[1].split()[0])
            anonymous += int(status.split("RssAnon:")[1].split()[0])
            fds += len(os.listdir(f"/proc/{pid}/fd"))
        return rss, anonymous, fds


class Load:
    """The client, with OpenSSL 3.5's libssl from Debian 13's root."""

    def __init__(self, program, openssl, cpus):
        # The script that runs Debian 13's openssl knows that root's loader.
        line = next(line for line in pathlib.Path(openssl).read_text().splitlines()
                    if line.startswith("exec "))
        words = line.split()[1:]
        self.command = words[:words.index("--library-path") + 2] + [str(program)]
        self.cpus = cpus

    def start(self, port, kind, group, count, at_a_time, seconds):
        """Returns (process, file): its answer is longer than a pipe holds."""
        out = tempfile.TemporaryFile("w+")
        process = subprocess.Popen(
            self.command + [str(port), kind, group, str(count), str(at_a_time),
                            str(seconds)],
            stdin=subprocess.DEVNULL, stdout=out,
            preexec_fn=lambda: os.sched_setaffinity(0, self.cpus))
        return process, out

    def end(self, process, out):
        if process.wait() != 0:
            sys.exit("handshake.sh: the load client failed")
        out.seek(0)
        return json.load(out)

    def run(self, *args):
        return self.end(*self.start(*args))
