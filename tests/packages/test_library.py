# SPDX-License-Identifier: Apache-2.0
"""Programs built with mlkemclient-0.h, the header as the soname 0 promised it, go on with
the library of this build: abidiff (libabigail) compares it with a library of nothing but
that interface, and every constant has its value. Beside it: what the static library and
the package's list of symbols have to be.

When the interface grew, a release copies client-lib/mlkemclient.h to mlkemclient-0.h.
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = pathlib.Path(os.environ["MLKEMD_BUILD"])
HEADER = ROOT / "client-lib/mlkemclient.h"
PROMISED = HERE / "mlkemclient-0.h"
LIBRARY = BUILD / "client-lib/libmlkemclient.so.0"
ARCHIVE = BUILD / "client-lib/libmlkemclient.a"
PROTOTYPE = re.compile(r"^((?:const )?(?:struct |enum )?\w+[\s*]+)(mlkemclient_\w+)"
                       r"\(([^;{]*?)\)[^;{)]*;", re.M)
# Bits of abidiff's exit status that say that it did not work.
MISUSE = 3


def bare(header):
    return re.sub(r"/\*.*?\*/", "", header, flags=re.S)


def prototypes(header):
    return PROTOTYPE.findall(bare(header))


def symbols(path, *options):
    said = subprocess.run(["nm", *options, path], check=True, capture_output=True,
                          text=True).stdout
    return {line.split()[-1] for line in said.splitlines()
            if re.search(r" [TDBRV] ", line)}


def library_of(header, directory):
    """A shared library with that interface, in which every function does nothing."""
    (directory / "mlkemclient.h").write_text(header)
    body = '#include "mlkemclient.h"\n'
    for returned, name, arguments in prototypes(header):
        result = "" if returned.split() == ["void"] else "return 0;"
        body += f"{returned} {name}({arguments}) {{ {result} }}\n"
    (directory / "body.c").write_text(body)
    subprocess.run(
        ["gcc", "-std=c11", "-D_GNU_SOURCE", "-g", "-shared", "-fPIC", "-w", "body.c", "-o",
         "libmlkemclient.so.0", "-Wl,-soname,libmlkemclient.so.0",
         f"-Wl,--version-script={ROOT / 'client-lib/mlkemclient.map'}"],
        check=True, cwd=directory)
    return directory / "libmlkemclient.so.0"


def compare(promised, library):
    """(status, text) of abidiff: can the second stand for the first?"""
    if not shutil.which("abidiff"):
        pytest.skip("abidiff is not installed (abigail-tools)")
    done = subprocess.run(
        ["abidiff", "--no-added-syms", promised, library], check=False,
        capture_output=True, text=True)
    assert not done.returncode & MISUSE, done.stdout + done.stderr
    return done.returncode, done.stdout


def values(header, names, directory):
    """What the constants are, by a program."""
    (directory / "mlkemclient.h").write_text(header)
    lines = "".join(f'printf("%s %lld\\n", "{name}", (long long)({name}));\n'
                    for name in names)
    (directory / "values.c").write_text('#include <stdio.h>\n#include "mlkemclient.h"\n'
                                        f"int main(void) {{ {lines} }}\n")
    subprocess.run(["gcc", "values.c", "-o", "values"], check=True, cwd=directory)
    return subprocess.run([directory / "values"], check=True, capture_output=True,
                          text=True).stdout


def constants(header):
    text = bare(header)
    names = re.findall(r"^\s*(MLKEMCLIENT_\w+)\s*=", text, re.M)
    names += re.findall(r"^#define (MLKEMCLIENT_\w+) +-?[0-9(]", text, re.M)
    names += [f"sizeof(struct {name})" for name in
              re.findall(r"^struct (mlkemclient_\w+) \{", text, re.M)]
    assert len(names) > 20
    return names


def test_the_library_keeps_its_promise(tmp_path):
    status, said = compare(library_of(PROMISED.read_text(), tmp_path), LIBRARY)
    assert status == 0, said


def test_constants_keep_their_values(tmp_path):
    promised = PROMISED.read_text()
    names = constants(promised)
    assert values(promised, names, tmp_path) == values(HEADER.read_text(), names, tmp_path)


@pytest.mark.parametrize("old, new", [
    (r"^void mlkemclient_wipe\([^;]*;", ""),
    (r"\tsize_t share;", "\tuint16_t share;"),
    (r"mlkemclient_strerror\(int error", "mlkemclient_strerror(const char *error"),
    (r"(MLKEMCLIENT_X25519MLKEM768) = 0x11ec", r"\1 = 0x11ed"),
], ids=["function", "member", "argument", "enumerator"])
def test_control_a_broken_promise_is_noticed(tmp_path, old, new):
    promised = PROMISED.read_text()
    broken, changed = re.subn(old, new, promised, flags=re.M, count=1)
    assert changed
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    status, said = compare(library_of(promised, tmp_path / "one"),
                           library_of(broken, tmp_path / "two"))
    assert status != 0, said


def test_the_promise_has_grown_with_the_header():
    """Additions are welcome: at the latest a release takes them over."""
    assert set(prototypes(PROMISED.read_text())) <= set(prototypes(HEADER.read_text()))
    assert {name for _, name, _ in prototypes(HEADER.read_text())} == symbols(
        LIBRARY, "-D", "--defined-only", "--without-symbol-versions")


def test_the_packages_symbols_are_the_librarys():
    lines = (ROOT / "debian/libmlkemclient0.symbols").read_text().splitlines()
    assert lines[0].split()[:2] == ["libmlkemclient.so.0", "libmlkemclient0"]
    named = {line.split("@")[0].strip() for line in lines if line.startswith(" mlkem")}
    assert named == {name for _, name, _ in prototypes(HEADER.read_text())}


def test_the_archive_shows_the_interface_alone():
    if not ARCHIVE.exists():
        pytest.skip("this build has no libmlkemclient.a")
    wanted = {name for _, name, _ in prototypes(HEADER.read_text())}
    assert symbols(ARCHIVE, "-g", "--defined-only") == wanted
    # The control: what it was made from shows a good deal more.
    assert len(symbols(BUILD / "kem/libkem.a", "-g", "--defined-only") - wanted) > 20


@pytest.mark.parametrize("how", ["shared", "archive", "static"])
def test_a_program_links_with_it(tmp_path, how):
    """As pkg-config says, uninstalled: a program with nothing but header and library."""
    if how != "shared" and not ARCHIVE.exists():
        pytest.skip("this build has no libmlkemclient.a")
    text = (BUILD / "meson-private/libmlkemclient.pc").read_text()
    text = re.sub(r"^(libdir|includedir)=.*$", "", text, flags=re.M)
    (tmp_path / "libmlkemclient.pc").write_text(
        f"libdir={tmp_path}\nincludedir={HEADER.parent}\n" + text)
    for library in (ARCHIVE, LIBRARY) if how == "shared" else (ARCHIVE,):
        shutil.copy(library, tmp_path)
    if how == "shared":
        (tmp_path / "libmlkemclient.so").symlink_to("libmlkemclient.so.0")
    flags = subprocess.run(
        ["pkg-config", *(["--static"] if how != "shared" else []), "--cflags", "--libs",
         "libmlkemclient", "libcrypto"], check=True, capture_output=True, text=True,
        env={**os.environ, "PKG_CONFIG_PATH": str(tmp_path)}).stdout.split()
    subprocess.run(
        ["gcc", *(["-static"] if how == "static" else []), "-w", "-o", "program",
         ROOT / "client-lib/examples/exchange.c", *flags], check=True, cwd=tmp_path,
        capture_output=True)
    ran = subprocess.run([tmp_path / "program", tmp_path / "no-socket"], check=True,
                         capture_output=True, text=True,
                         env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    assert "lattice" in ran.stdout
    linked = subprocess.run(["ldd", "program"], check=False, cwd=tmp_path,
                            capture_output=True, text=True).stdout
    assert ("libmlkemclient" in linked) == (how == "shared")
