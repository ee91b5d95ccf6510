# SPDX-License-Identifier: Apache-2.0
"""What main.py measures: a cell is a load on one of the daemons, once a round."""

import json
import os
import pathlib
import socket
import statistics
import struct
import sys
import time

import scrape
import servers

GOLDEN = servers.ROOT / "tests/proto/golden"

# (what, where the daemon runs, seconds, options of mlkemctl bench)
LONE = [
    ("back to back, client looks", "apart", 0.3, {"spin_us": 100}),
    ("back to back, client sleeps", "apart", 0.3, {"spin_us": 0}),
    ("1 ms apart", "apart", 0.5, {"spin_us": 100, "idle_us": 1000}),
    ("10 ms apart", "apart", 1.0, {"spin_us": 100, "idle_us": 10000}),
    ("back to back", "together", 0.3, {"spin_us": 0}),
    ("1 ms apart", "together", 0.5, {"spin_us": 0, "idle_us": 1000}),
    ("10 ms apart", "together", 1.0, {"spin_us": 0, "idle_us": 10000}),
]
CONNECTIONS, IN_FLIGHT = (1, 4, 16, 64), (1, 8)
WINDOW_S = 0.3  # what of a load is looked at
LEAD_S = 0.35  # until a shard is known to be busy, which is looked at every 100 ms
SPREAD = 0.05  # of a processor: a shard that does less has got no connection
# (what, connections in a round, how many at a time)
SET_UPS = [("connect, Hello, close", 200, 1), ("64 at a time", 256, 64),
           ("Ping on an open connection", 200, 0)]


class Daemon(servers.Daemon):
    """A daemon with settings, which tells what its threads use."""

    def __init__(self, build, directory, cpus, settings):
        self.build, self.directory, self.cpus = build, directory, cpus
        self.path, self.control = str(directory / "s.sock"), str(directory / "c.sock")
        self.metrics = str(directory / "m.sock")
        (directory / "mlkemd.conf").write_text(
            f"[socket]\npath = {self.path}\ncontrol-path = {self.control}\n"
            f"[metrics]\npath = {self.metrics}\n[daemon]\nlog-level = debug\n" +
            "".join(f"{name.removeprefix('daemon.')} = {value}\n"
                    for name, value in settings.items()))
        self.start()
        self.name = f"the mlkemd of {directory.name}"

    def need_alive(self):
        if self.process.poll() is not None:
            sys.exit(f"placement: {self.name} ended with {self.process.returncode}:\n"
                     f"{self.log.read_text()[-2000:]}")

    def tasks(self):
        return list(pathlib.Path(f"/proc/{self.pid}/task").iterdir())

    def move(self, cpus):
        self.need_alive()
        for task in self.tasks():
            os.sched_setaffinity(int(task.name), cpus)

    def main_ns(self):
        return int(pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/schedstat")
                   .read_text().split()[0])

    def sleeps(self):
        """How often its shards went to sleep."""
        return sum(int(line.split()[1]) for task in self.tasks()
                   if int(task.name) != self.pid
                   for line in (task / "status").read_text().splitlines()
                   if line.startswith("voluntary_ctxt_switches"))

    def looks_us(self):
        """What it found a wake-up to cost."""
        return int(self.log.read_text().split("busy-poll: looks for ")[1].split()[0])

    def look(self):
        """Counters and clocks of this moment."""
        figures = scrape.figures(self.metrics)
        return {"at_ns": time.monotonic_ns(), "cpu_ns": servers.cpu_ns(self.pid),
                "groups": figures.of("mlkemd_batch_size_count"),
                "items": figures.of("mlkemd_batch_size_sum"),
                "busy": [value for (name, labels), value in sorted(figures.items())
                         if name == "mlkemd_shard_busy_seconds_total"]}


CLIENTS = []


def finish(process, daemon):
    """The figures of a mlkemctl bench."""
    out, err = process.communicate(timeout=120)
    daemon.need_alive()
    if process.returncode:
        sys.exit(f"placement: mlkemctl bench ended with {process.returncode}: {err}")
    row = json.loads(out)
    if row["failed"] or not row["ops"]:
        sys.exit(f"placement: of a bench's operations {row['failed']} failed, "
                 f"{row['ops']} were answered")
    return row


class Connection:
    """A connection of our own. What it sends are the frames that the tests hold."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(20)
        self.socket.connect(daemon.path)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.socket.close()

    def send(self, name):
        self.socket.sendall(FRAMES[name])

    def receive(self):
        """An answer; what it says is the tests' matter."""
        answer = self.socket.recv(65536)
        while len(answer) < 4 or len(answer) < 4 + struct.unpack(">I", answer[:4])[0]:
            more = self.socket.recv(65536)
            if not more:
                self.daemon.need_alive()
                sys.exit("placement: the daemon closed a connection")
            answer += more
        return answer

    def hello(self):
        self.send("hello")
        return self.receive()


FRAMES = {name: (GOLDEN / f"request-{name}.bin").read_bytes() for name in ("hello", "ping")}


class Row:
    """rounds: what each gave, {figure: number}."""

    def __init__(self, **what):
        self.what, self.rounds = what, []

    def result(self):
        out = dict(self.what)
        for name in self.rounds[0]:
            values = [r[name] for r in self.rounds]
            low, _, high = (statistics.quantiles(values, n=4) if len(values) > 1
                            else values * 3)
            out[name] = round(statistics.median(values), 3)
            out[name + "_quartiles"] = [round(low, 3), round(high, 3)]
        return out


class Polling(Row):
    """A lone client's calls."""

    def __init__(self, rig, word, daemon, load, where, seconds, options):
        super().__init__(part="polling", load=load, where=where, busy_poll=word,
                         looks_us=daemon.looks_us())
        self.rig, self.daemon = rig, daemon
        self.seconds, self.options = seconds, options

    def measure(self):
        rig, daemon = self.rig, self.daemon
        daemon.move(rig.other_cpus if self.what["where"] == "apart" else rig.client_cpus)
        daemon.settle()
        sleeps = daemon.sleeps()
        row = finish(rig.bench(daemon, self.seconds, connections=1, in_flight=1,
                               **self.options), daemon)
        self.rounds.append({name: row[name] for name in
                            ("p50_us", "p99_us", "ops_per_s", "cpu_us_per_op")} |
                           {"sleeps_per_op": (daemon.sleeps() - sleeps) / row["ops"]})


class Idle(Row):
    def __init__(self, word, daemon):
        super().__init__(part="polling", load="idle, one connection", where="anywhere",
                         busy_poll=word, looks_us=daemon.looks_us())


class Placement(Row):
    """Half of the connections come with the others, or when those keep a shard busy."""

    def __init__(self, rig, name, daemon, by_and_by, n, in_flight):
        super().__init__(part="placement", placement=name, connections=n,
                         in_flight=in_flight)
        self.rig, self.daemon, self.by_and_by = rig, daemon, by_and_by
        self.n = [n - n // 2, n // 2] if n > 1 else [1]

    def load(self, n, seconds):
        client = self.rig.bench(self.daemon, seconds, connections=n,
                                in_flight=self.what["in_flight"], spin_us=0)
        CLIENTS.append(client)
        return client

    def measure(self):
        rig, daemon = self.rig, self.daemon
        daemon.move(rig.cpus)
        daemon.settle()
        lead_s = LEAD_S if self.by_and_by else 0
        clients = []
        for i, n in enumerate(self.n):
            if i:
                rig.pause(lead_s)
            clients.append(self.load(n, LEAD_S + WINDOW_S + (0 if i else lead_s)))
        rig.pause(LEAD_S / 2)
        before = daemon.look()
        rig.pause(WINDOW_S)
        after = daemon.look()
        last = [finish(client, daemon) for client in clients][-1]
        CLIENTS.clear()
        self.note(before, after, last)

    def note(self, before, after, last):
        took_ns = after["at_ns"] - before["at_ns"]
        items = after["items"] - before["items"]
        if not items:
            sys.exit("placement: nothing was done while a load was looked at")
        busy = [(b - a) / took_ns * 1e9 for a, b in zip(before["busy"], after["busy"])]
        if self.by_and_by and busy[1] < SPREAD:
            return  # the first shard was not busy enough: nothing was spread
        self.rounds.append({
            "ops_per_s": items / took_ns * 1e9,
            "cpu_us_per_op": (after["cpu_ns"] - before["cpu_ns"]) / 1000 / items,
            "mean_batch": items / (after["groups"] - before["groups"]),
            "busy_0": busy[0], "busy_1": busy[1] if len(busy) > 1 else 0.0,
            "p50_us": last["p50_us"], "p99_us": last["p99_us"]})


class HandOver(Row):
    """Connections that are made, greeted and closed; or one that is kept, and asked."""

    def __init__(self, rig, daemon, name, count, at_a_time):
        super().__init__(part="hand-over", what=name)
        self.rig, self.daemon, self.count, self.at_a_time = rig, daemon, count, at_a_time

    def connections(self):
        """ns from each connect() to the answer to its Hello."""
        out = []
        for _ in range(self.count // self.at_a_time):
            made = []
            for _ in range(self.at_a_time):
                begin = time.monotonic_ns()
                made.append((begin, Connection(self.daemon)))
            for _, connection in made:
                connection.send("hello")
            for begin, connection in made:
                connection.receive()
                out.append(time.monotonic_ns() - begin)
            for _, connection in made:
                connection.socket.close()
        return out

    def pings(self):
        out = []
        with Connection(self.daemon) as connection:
            connection.hello()
            for _ in range(self.count):
                begin = time.monotonic_ns()
                connection.send("ping")
                connection.receive()
                out.append(time.monotonic_ns() - begin)
        return out

    def measure(self):
        daemon = self.daemon
        daemon.move(self.rig.other_cpus)
        daemon.settle()
        main_ns, all_ns = daemon.main_ns(), servers.cpu_ns(daemon.pid)
        begin = time.monotonic_ns()
        each = self.connections() if self.at_a_time else self.pings()
        took_ns = time.monotonic_ns() - begin
        daemon.settle()
        daemon.need_alive()
        main_ns = daemon.main_ns() - main_ns
        all_ns = servers.cpu_ns(daemon.pid) - all_ns
        self.rounds.append({
            "p50_us": statistics.median(each) / 1000,
            "p99_us": sorted(each)[len(each) * 99 // 100] / 1000,
            "per_s": len(each) / took_ns * 1e9,
            "main_us": main_ns / 1000 / len(each),
            "shard_us": (all_ns - main_ns) / 1000 / len(each)})


def stop_clients():
    for client in CLIENTS:
        if client.poll() is None:
            client.terminate()
            client.wait()
