# SPDX-License-Identifier: Apache-2.0
"""Handshakes in a loop, by Python's ssl, which is the machine's OpenSSL: behind the
provider when its environment says so.

usage: load.py PORT CAFILE THREADS [abort]

Each is a whole one: the server's answer to a small request is awaited, since a client of
TLS 1.3 is done before the server is. With abort, half of the connections end in the
middle. Every line on standard input is answered with the counts so far; its end ends the
load.
"""

import json
import os
import socket
import ssl
import sys
import threading

PORT, CA, THREADS = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
ABORT = "abort" in sys.argv[4:]
TIMEOUT = 60


class Load:
    def __init__(self):
        self.context = ssl.create_default_context(cafile=CA)
        self.lock = threading.Lock()
        self.good, self.aborted, self.failed = 0, 0, []
        self.ending = threading.Event()

    def handshake(self):
        with socket.create_connection(("127.0.0.1", PORT), TIMEOUT) as conn:
            with self.context.wrap_socket(conn, server_hostname="localhost") as tls:
                tls.sendall(b"HEAD / HTTP/1.0\r\nHost: localhost\r\n\r\n")
                if not tls.recv(4096):
                    raise OSError("no answer behind the handshake")

    def abort(self, n):
        """Goes away before, in, or right behind its ClientHello."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        hello = outgoing.read()
        with socket.create_connection(("127.0.0.1", PORT), TIMEOUT) as conn:
            conn.sendall(hello[:(0, 700, len(hello), len(hello))[n % 4]])
            if n % 4 == 3:
                conn.recv(100)

    def loop(self, number):
        n = number
        while not self.ending.is_set():
            n += 1
            try:
                if ABORT and n % 2:
                    self.abort(n // 2)
                    with self.lock:
                        self.aborted += 1
                    continue
                self.handshake()
                with self.lock:
                    self.good += 1
            except OSError as error:
                with self.lock:
                    self.failed.append(f"{type(error).__name__}: {error}")

    def report(self):
        with self.lock:
            print(json.dumps({"good": self.good, "aborted": self.aborted,
                              "failed": len(self.failed),
                              "errors": self.failed[:5]}), flush=True)


def main():
    load = Load()
    threads = [threading.Thread(target=load.loop, args=(i,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for _ in sys.stdin:
        load.report()
    load.ending.set()
    for thread in threads:
        thread.join(TIMEOUT)
    load.report()
    os._exit(0)


main()
