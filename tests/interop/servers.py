# SPDX-License-Identifier: Apache-2.0
"""Starts servers on loopback: nginx, HAProxy, s_server and the peers of other makers.

A World is a folder with certificates, data and configurations that other users can read,
since nginx and HAProxy drop their rights. Whatever is started in it ends with it.
"""

import contextlib
import functools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

import others

PROVIDER = os.environ["MLKEMD_PROVIDER_DIR"]
CTL = os.environ["MLKEMD_CTL"]
SANITIZER = os.environ.get("MLKEMD_SANITIZER", "")
SLOW = 4 if SANITIZER else 1
ROOT = os.geteuid() == 0
GROUPS = "X25519MLKEM768:X25519:P-256"
REPORT = re.compile(rb"(ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:"
                    rb"|FATAL: bug condition|segfault|signal 11|signal 6).*")


def wait_for(condition, timeout, what):
    end = time.monotonic() + timeout * SLOW
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"after {timeout} s still not: {what}"
        time.sleep(0.02)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
        return True
    except OSError:
        return False


def run(*args, **more):
    return subprocess.run([str(arg) for arg in args], check=True, capture_output=True,
                          timeout=120 * SLOW, **more)


@functools.lru_cache(None)
def has_the_group():
    """Whether this machine's OpenSSL is 3.5 or later, where the provider stands aside."""
    said = run("openssl", "version").stdout.split()[1].decode()
    major, minor = said.split(".")[:2]
    return (int(major), int(minor)) >= (3, 5)


class Running:
    """A server: its port, its process, its log. listening None: not waited for."""

    def __init__(self, world, name, args, port, env=None, prepare=None, listening=True):
        self.world, self.name, self.port = world, name, port
        self.log_path = world.path / f"{name}-{port}.log"
        self.ended = False
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [str(arg) for arg in args], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=dict(world.plain_env, **(env or {})), cwd=world.path,
                preexec_fn=prepare, start_new_session=True)
        world.running.append(self)
        if listening:
            try:
                wait_for(lambda: not self.alive() or listens(port), 30, "listening")
                assert self.alive(), f"{name} ended:\n{self.log()}"
            except BaseException:
                self.stop(check=False)
                raise

    @property
    def pid(self):
        return self.process.pid

    def alive(self):
        return self.process.poll() is None

    def log(self):
        return self.log_path.read_text(errors="replace")

    def workers(self):
        """Its children."""
        said = pathlib.Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in said.split()]

    def stop(self, check=True):
        if self.ended:
            return
        self.ended = True
        died = self.process.poll()
        # The whole session: workers, and what an upgrade left of an older master.
        for number in (signal.SIGTERM, signal.SIGCONT):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
        try:
            self.process.wait(20 * SLOW)
        except subprocess.TimeoutExpired:
            check = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        found = REPORT.search(self.log_path.read_bytes())
        assert not found, f"{self.name}: {self.log()}"
        assert not check or died is None, f"{self.name} died with {died}:\n{self.log()}"


class World:
    def __init__(self, folder=None):
        self.path = pathlib.Path(folder or tempfile.mkdtemp(prefix="mlkemd-interop-"))
        os.chmod(self.path, 0o755)
        self.running = []
        self.plain_env = {name: value for name, value in os.environ.items()
                          if not name.startswith(("OPENSSL_", "LD_"))}
        self.make_certificates()
        self.data = os.urandom(100000).hex().encode()
        (self.path / "data").write_bytes(self.data)

    def __enter__(self):
        return self

    def __exit__(self, kind, *unused):
        self.stop_all(check=kind is None)
        shutil.rmtree(self.path, ignore_errors=True)

    def stop_all(self, check=True):
        failures = []
        for server in reversed(self.running):
            try:
                server.stop(check)
            except AssertionError as failure:
                failures.append(failure)
        self.running.clear()
        if failures and check:
            raise failures[0]

    def file(self, name, text, mode=0o644):
        path = self.path / name
        path.write_text(text)
        path.chmod(mode)
        return path

    def make_certificates(self):
        """A CA and a certificate for localhost, ECDSA P-256, as most servers have."""
        at = self.path
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        run("openssl", "req", "-x509", *key, "-keyout", at / "ca.key", "-out",
            at / "ca.pem", "-subj", "/CN=mlkemd test CA", "-days", "30", "-addext",
            "keyUsage=critical,keyCertSign,cRLSign", env=self.plain_env)
        run("openssl", "req", *key, "-keyout", at / "key.pem", "-out", at / "csr.pem",
            "-subj", "/CN=localhost", env=self.plain_env)
        extensions = self.file("leaf.cnf", "basicConstraints=CA:FALSE\nsubjectAltName="
                               "DNS:localhost,IP:127.0.0.1\n")
        run("openssl", "x509", "-req", "-in", at / "csr.pem", "-CA", at / "ca.pem",
            "-CAkey", at / "ca.key", "-CAcreateserial", "-out", at / "crt.pem", "-days",
            "20", "-extfile", extensions, env=self.plain_env)
        both = (at / "crt.pem").read_text() + (at / "key.pem").read_text()
        self.file("both.pem", both, 0o600)

    def provider_env(self, socket_path, groups=GROUPS, name="openssl.cnf", **keys):
        """The environment that puts a program behind the provider: an openssl.cnf made
        from this machine's own, by the command that docs/proxies.md names."""
        path = self.path / name
        if has_the_group():
            keys.setdefault("takeover", "yes")
        words = [f"--set={key.replace('_', '-')}={value}" for key, value in keys.items()]
        run(CTL, "openssl-conf", "--out", path, "--socket", socket_path, "--groups",
            groups, *words, env=self.plain_env)
        path.chmod(0o644)
        return {"OPENSSL_CONF": str(path), "OPENSSL_MODULES": PROVIDER,
                **sanitizer_env()}


def sanitizer_env():
    """What a program needs that loads a module with a sanitizer in it: the runtime, which
    its compiler knows. Leaks of the hosts are not looked for: valgrind does that."""
    if not SANITIZER:
        return {}
    runtime = pathlib.Path(os.environ["MLKEMD_SANITIZER_RUNTIME"])
    if not runtime.is_absolute() or not runtime.exists():
        pytest.skip(f"the compiler has no shared {runtime.name}")
    return {"LD_PRELOAD": str(runtime),
            "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"}


def as_user():
    """Whom root's workers become."""
    return "nobody", "nogroup"


class Daemonized(Running):
    """One that goes into the background and writes a file with its pid. nginx takes the
    signal for a new binary only so."""

    def __init__(self, world, name, args, port, pid_file, env=None):
        self.pid_file = pid_file
        super().__init__(world, name, args, port, env, listening=None)
        assert self.process.wait(60 * SLOW) == 0, self.log()
        wait_for(lambda: listens(port), 30, "listening")

    @property
    def pid(self):
        # A master that is being replaced renames the file, and writes it anew.
        def read():
            with contextlib.suppress(FileNotFoundError):
                return self.pid_file.read_text().strip()
        return int(wait_for(read, 30, "a pid file"))

    def alive(self):
        return exists(self.pid)

    def stop(self, check=True):
        if self.ended:
            return
        self.ended = True
        pid = self.pid
        if exists(pid):
            # A session of its own, which masters that replace each other share.
            group = os.getpgid(pid)
            assert group != os.getpgrp()
            os.killpg(group, signal.SIGTERM)
            wait_for(lambda: not exists(pid), 30, "ended")
        found = REPORT.search(self.log_path.read_bytes())
        assert not found, f"{self.name}: {self.log()}"


def exists(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


NGINX = """{user}
daemon {daemon};
master_process on;
worker_processes {workers};
pid {pid};
error_log stderr info;
{keep}
env OPENSSL_MODULES;
env LD_LIBRARY_PATH;
env LD_PRELOAD;
env ASAN_OPTIONS;
worker_shutdown_timeout 20s;
{main}
events {{ worker_connections 512; }}
http {{
	log_format kex '$ssl_protocol $ssl_curve $ssl_session_reused $status';
	access_log {access} kex;
	client_body_temp_path {tmp}; proxy_temp_path {tmp}; fastcgi_temp_path {tmp};
	uwsgi_temp_path {tmp}; scgi_temp_path {tmp};
	server {{
{server}
	}}
}}
"""


def nginx_config(world, port, server, workers=1, main="", background=False,
                 keep="env OPENSSL_CONF;"):
    temp = world.path / f"tmp-{port}"
    temp.mkdir(exist_ok=True)
    if ROOT:
        shutil.chown(temp, *as_user())
    return world.file(f"nginx-{port}.conf", NGINX.format(
        user="user %s %s;" % as_user() if ROOT else "", workers=workers, main=main,
        daemon="on" if background else "off", keep=keep, pid=world.path / f"nginx-{port}.pid", tmp=temp,
        access=world.path / f"access-{port}.log", server=server))


def nginx_tls(world, port, protocols="TLSv1.2 TLSv1.3", extra=""):
    return f"""		listen 127.0.0.1:{port} ssl;
		ssl_certificate {world.path}/crt.pem;
		ssl_certificate_key {world.path}/key.pem;
		ssl_protocols {protocols};
		{extra}
		root {world.path};"""


def nginx(world, env=None, kind="host", server=None, workers=1, port=None, main="",
          prepare=None, background=False, keep="env OPENSSL_CONF;", **tls):
    program = others.find(kind, "nginx")
    port = port or free_port()
    config = nginx_config(world, port, server(port) if server else
                          nginx_tls(world, port, **tls), workers, main, background, keep)
    args = [program, "-e", "stderr", "-p", world.path, "-c", config]
    if background:
        return Daemonized(world, "nginx", args, port, world.path / f"nginx-{port}.pid",
                          env)
    return Running(world, "nginx", args, port, env, prepare)


def nginx_proxy(world, upstream, env=None, kind="host", extra=None, **more):
    """A plain front whose proxy_pass speaks TLS."""
    lines = "proxy_ssl_conf_command Groups %s;" % GROUPS if extra is None else extra
    return nginx(world, env, kind, lambda port: f"""		listen 127.0.0.1:{port};
		location / {{
			proxy_pass https://127.0.0.1:{upstream};
			proxy_ssl_protocols TLSv1.2 TLSv1.3;
			proxy_ssl_name localhost;
			proxy_ssl_server_name on;
			proxy_ssl_verify on;
			proxy_ssl_trusted_certificate {world.path}/ca.pem;
			proxy_ssl_session_reuse off;
			{lines}
		}}""", **more)


HAPROXY = """global
	{privileges}
	{main}
	maxconn {maxconn}
	log stderr format raw daemon
	stats socket {stats} mode 600 level admin expose-fd listeners
	hard-stop-after 20s
defaults
	mode http
	timeout connect 20s
	timeout client 60s
	timeout server 60s
frontend front
{front}
{back}
"""


def haproxy_config(world, port, front, back="", chroot=None, main="", maxconn=300):
    privileges = ""
    if ROOT:
        privileges = "user %s\n\tgroup %s" % as_user()
        if chroot:
            privileges += f"\n\tchroot {chroot}"
    return world.file(f"haproxy-{port}.cfg", HAPROXY.format(
        privileges=privileges, main=main, maxconn=maxconn, front=front, back=back,
        stats=world.path / f"haproxy-{port}.sock"))


def haproxy_front(world, port, bind=""):
    # A page has to fit into a buffer: 12000 of the bytes are what moves.
    (world.path / "page").write_bytes(world.data[:12000])
    return f"""	bind 127.0.0.1:{port} ssl crt {world.path}/both.pem {bind}
	http-request return status 200 content-type text/plain file {world.path}/page"""


def haproxy(world, env=None, kind="host", bind="", front=None, back="", port=None,
            args=("-db",), prepare=None, prefix=(), **more):
    program = others.find(kind, "haproxy")
    port = port or free_port()
    config = haproxy_config(world, port, front(port) if front else
                            haproxy_front(world, port, bind), back, **more)
    return Running(world, "haproxy", [*prefix, program, *args, "-f", config], port, env,
                   prepare)


def haproxy_backend(world, upstream, env=None, kind="host", **more):
    """A plain front and a TLS backend without connection reuse."""
    return haproxy(world, env, kind, front=lambda port: f"""	bind 127.0.0.1:{port}
	http-reuse never
	default_backend up""", back=f"""backend up
	http-request set-header Connection close
	server s 127.0.0.1:{upstream} ssl verify required ca-file {world.path}/ca.pem """
                   "sni str(localhost) verifyhost localhost no-ssl-reuse", **more)


def s_server(world, env=None, kind="host", args=(), port=None, prepare=None, prefix=()):
    program = others.find(kind, "openssl")
    port = port or free_port()
    return Running(world, "s_server", [
        *prefix, program, "s_server", "-accept", f"127.0.0.1:{port}", "-cert", "crt.pem",
        "-key", "key.pem", "-WWW", *args], port, env, prepare)


NODE_SERVER = """
const [port, crt, key, data] = process.argv.slice(2);
const fs = require('fs');
require('https').createServer({cert: fs.readFileSync(crt), key: fs.readFileSync(key)},
    (request, response) => response.end(fs.readFileSync(data)))
    .listen(Number(port), '127.0.0.1');
"""


def node_server(world, **unused):
    program = others.find("node", "node")
    port = free_port()
    script = world.file("server.js", NODE_SERVER)
    return Running(world, "node", [program, script, port, "crt.pem", "key.pem", "data"],
                   port)


def go_server(world, **unused):
    port = free_port()
    return Running(world, "go", [others.go_peer(), "server", port, "crt.pem",
                                 "key.pem", "data"], port)


def rustls_server(world, **unused):
    port = free_port()
    return Running(world, "rustls", [others.rustls_peer(), "server", port, "crt.pem",
                                     "key.pem", "data"], port)
