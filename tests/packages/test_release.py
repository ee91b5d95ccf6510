# SPDX-License-Identifier: Apache-2.0
"""The last release's programs with this daemon, this build's with the last release's, and
a program linked with the last release's library that finds this one.

The last release is the last tag v*; MLKEMD_RELEASE=REVISION takes another revision. With
MLKEMD_LONG=1 the same is done with HEAD for a release, to see that the test itself works.
"""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["MLKEMD_BUILD"])
LONG = os.environ.get("MLKEMD_LONG") == "1"
TARGETS = ["daemon/mlkemd", "tools/mlkemctl", "client-lib/examples/exchange"]


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], check=False,
                          capture_output=True)


def last_release():
    """A revision, or None where there is no tag yet."""
    if os.environ.get("MLKEMD_RELEASE"):
        return os.environ["MLKEMD_RELEASE"]
    return git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*").stdout.decode(
        ).strip() or None


def build_of(revision, directory):
    """A build directory of that revision."""
    archive = git("archive", revision)
    assert archive.returncode == 0, archive.stderr
    source = directory / "source"
    source.mkdir()
    subprocess.run(["tar", "-x", "-C", source], check=True, input=archive.stdout)
    for command in (["meson", "setup", "-Dtests=false", directory / "build", source],
                    ["ninja", "-C", directory / "build", *TARGETS]):
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    return directory / "build"


class Running:
    """The daemon of a build on a socket of its own."""

    def __init__(self, build, directory):
        self.socket, self.control = directory / "data", directory / "control"
        self.process = subprocess.Popen(
            [build / "daemon/mlkemd", "--socket", self.socket, "--control-socket",
             self.control], stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        for line in self.process.stderr:
            if ">ready: " in line:
                return self
        raise AssertionError("the daemon did not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()
        assert self.process.returncode == 0


def speak(client, server, directory):
    """Programs of one build with the daemon of another."""
    with Running(server, directory) as daemon:
        for words in (["ping"], ["info"], ["demo", "--exchanges", "200"]):
            control = ["--control-socket", daemon.control] if words[0] == "demo" else []
            done = subprocess.run([client / "tools/mlkemctl", *words, *control, "--socket",
                                   daemon.socket], check=False, capture_output=True,
                                  text=True)
            assert done.returncode == 0, (words, done.stdout, done.stderr)


def link(program, library, server, directory):
    """A program of one build that finds the shared library of another."""
    with Running(server, directory) as daemon:
        done = subprocess.run(
            [program / "client-lib/examples/exchange", daemon.socket], check=False,
            capture_output=True, text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(library / "client-lib"),
                 "LD_BIND_NOW": "1"})
        assert done.returncode == 0 and "lattice" in done.stdout, done.stdout + done.stderr


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    revision = last_release()
    if revision is None:
        pytest.skip("no release is tagged yet")
    return build_of(revision, tmp_path_factory.mktemp("release"))


def test_programs_of_the_release_with_this_daemon(release, tmp_path):
    speak(release, BUILD, tmp_path)


def test_programs_of_this_build_with_the_releases_daemon(release, tmp_path):
    speak(BUILD, release, tmp_path)


def test_program_of_the_release_with_this_library(release, tmp_path):
    link(release, BUILD, BUILD, tmp_path)


if LONG:
    def test_control_of_the_test_itself(tmp_path):
        head = build_of("HEAD", tmp_path)
        for name, function, builds in (("a", speak, (head, BUILD)),
                                       ("b", speak, (BUILD, head)),
                                       ("c", link, (head, BUILD, BUILD))):
            (tmp_path / name).mkdir()
            function(*builds, tmp_path / name)
        # A library that lacks a symbol of the program is noticed.
        (tmp_path / "client-lib").mkdir()
        subprocess.run(["gcc", "-shared", "-o",
                        tmp_path / "client-lib/libmlkemclient.so.0", "-x", "c", "-"],
                       check=True, input=b"int nothing;\n")
        (tmp_path / "d").mkdir()
        with pytest.raises(AssertionError):
            link(head, tmp_path, BUILD, tmp_path / "d")
