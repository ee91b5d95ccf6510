# SPDX-License-Identifier: Apache-2.0
"""Clients that fetch /data from https://localhost:PORT, checked against the test's CA.

Each takes (world, port, env) and returns the body that it got.
"""

import subprocess

import others
from servers import SLOW

REQUEST = b"GET /data HTTP/1.0\r\nHost: localhost\r\n\r\n"


class Failed(Exception):
    """A client ended with an error; its words."""


def run(world, args, env=None, given=b"", timeout=60):
    said = subprocess.run([str(arg) for arg in args], input=given, check=False,
                          capture_output=True, timeout=timeout * SLOW, cwd=world.path,
                          env=dict(world.plain_env, **(env or {})))
    if said.returncode != 0:
        raise Failed(f"status {said.returncode}: " +
                     said.stderr.decode(errors="replace").strip()[-400:])
    return said.stdout


def body(answer):
    head, found, content = answer.partition(b"\r\n\r\n")
    if not found or b" 200 " not in head.splitlines()[0]:
        raise Failed(f"no answer: {answer[:100]!r}")
    return content


def s_client(world, port, env=None, kind="host", args=()):
    return body(run(world, [others.find(kind, "openssl"), "s_client", "-quiet",
                            "-connect", f"127.0.0.1:{port}", "-servername", "localhost",
                            "-verify_return_error", "-CAfile", "ca.pem", *args], env,
                    REQUEST))


def openssl_35(world, port, env=None):
    return s_client(world, port, None, "debian-13")


def curl(world, port, env=None, kind="host", args=()):
    return run(world, [others.find(kind, "curl"), "-sS", "--fail", "--noproxy", "*",
                       "--cacert", "ca.pem", *args, "--resolve",
                       f"localhost:{port}:127.0.0.1", f"https://localhost:{port}/data"],
               env)


def curl_35(world, port, env=None):
    return curl(world, port, None, "debian-13")


NODE_CLIENT = """
const [port, ca] = process.argv.slice(2);
require('https').get({host: '127.0.0.1', servername: 'localhost', port: Number(port),
    path: '/data', headers: {Host: 'localhost'}, ca: require('fs').readFileSync(ca)},
    response => response.pipe(process.stdout))
    .on('error', error => { console.error(error.message); process.exit(1); });
"""


def node(world, port, env=None):
    script = world.file("client.js", NODE_CLIENT)
    return run(world, [others.find("node", "node"), script, port, "ca.pem"])


def go(world, port, env=None):
    return body(run(world, [others.go_peer(), "client", port, "ca.pem"]))


def rustls(world, port, env=None):
    return body(run(world, [others.rustls_peer(), "client", port, "ca.pem"]))


def chromium(world, port, env=None):
    """Headless; the certificate of a test CA is let pass, the key exchange is its own."""
    profile = world.path / "chromium"
    said = run(world, [others.chromium(), "--headless=new", "--no-sandbox",
                       "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                       f"--user-data-dir={profile}", "--ignore-certificate-errors",
                       "--dump-dom", f"https://localhost:{port}/data"], timeout=120)
    text = said.partition(b"<pre")[2].partition(b">")[2].partition(b"</pre>")[0]
    if not text:
        raise Failed(f"no page: {said[:200]!r}")
    return text
