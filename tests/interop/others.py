# SPDX-License-Identifier: Apache-2.0
"""The programs of others: from the machine, from packages, or built from peers/.

What can't be had is a skip with a reason; the reason is found once a session.
"""

import functools
import hashlib
import os
import pathlib
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(os.environ["MLKEMD_SOURCE"])
HERE = SOURCE / "tests" / "interop"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or
                     pathlib.Path.home() / ".cache") / "mlkemd-tests" / "peers"
LONG = os.environ.get("MLKEMD_LONG") == "1"


class Absent(Exception):
    """Why a program can't be had."""


@functools.lru_cache(None)
def ask(kind, name, **env):
    args = [kind] if kind == "node" else [kind, name]
    said = subprocess.run([SOURCE / "tests/lib/proxies.sh", *args], check=False,
                          capture_output=True, text=True, env=dict(os.environ, **env))
    for line in said.stdout.splitlines():
        program, path = line.split("\t")
        if program == name:
            return path, None
    return None, " ".join(said.stderr.split()) or f"{name} cannot be had"


def find(kind, name):
    """The path of a program; kind is "host", "debian-13" or "node"."""
    path, reason = ask(kind, name)
    if reason:
        raise Absent(reason)
    return path


def need(kind, name):
    try:
        return find(kind, name)
    except Absent as absent:
        pytest.skip(str(absent))


def built(folder):
    """Where a peer of this source text is kept, and whether it is there."""
    text = hashlib.sha256()
    for path in sorted((HERE / "peers" / folder).rglob("*")):
        if path.is_file():
            text.update(path.read_bytes())
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"{folder}-{text.hexdigest()[:16]}"
    return path, path.exists()


def build(tool, folder, path, args, product=None, **env):
    # In a copy: cargo writes beside its sources.
    source = CACHE / f"{folder}-src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(HERE / "peers" / folder, source)
    said = subprocess.run(args, cwd=source, check=False, capture_output=True, text=True,
                          env=dict(os.environ, **env))
    if said.returncode:
        raise Absent(f"{tool} could not build peers/{folder}: "
                     f"{said.stderr.strip().splitlines()[-1:]}")
    if product:
        shutil.copy2(product, f"{path}.new")
        os.replace(f"{path}.new", path)
    return str(path)


@functools.lru_cache(None)
def go_peer():
    path, there = built("go")
    if there:
        return str(path)
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if not go:
        raise Absent("Go is not installed")
    # A version that is too old must not fetch another.
    return build("go", "go", path, [go, "build", "-o", str(path), "."], None,
                 GOTOOLCHAIN="local", GOFLAGS="-mod=mod", CGO_ENABLED="0")


@functools.lru_cache(None)
def rustls_peer():
    path, there = built("rustls")
    if there:
        return str(path)
    cargo = shutil.which("cargo") or shutil.which(
        "cargo", path=str(pathlib.Path.home() / ".cargo/bin"))
    if not cargo:
        raise Absent("cargo is not installed")
    if not LONG:
        raise Absent("rustls with aws-lc-rs takes minutes to build: --long does that once")
    target = CACHE / "rustls-target"
    return build("cargo", "rustls", path,
                 [cargo, "build", "--release", "--quiet"],
                 target / "release" / "tlspeer", CARGO_TARGET_DIR=str(target))


@functools.lru_cache(None)
def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    # 150 packages: not fetched by the way, but used once they are there.
    path, reason = ask("host", "chromium", **({} if LONG else {"MLKEMD_OFFLINE": "1"}))
    if reason:
        raise Absent(reason if LONG else "Chromium is not installed: --long fetches it")
    return path
