# SPDX-License-Identifier: Apache-2.0
"""mlkemctl openssl-conf: whatever this machine's file says, it stays, and ours is added.

The measure is OpenSSL itself, which lists the providers that a file activates.
"""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from ctl import FAILED, HOOKS, USAGE, ctl

MODULE = pathlib.Path(os.environ["MLKEMD_CTL"]).parent.parent / "provider"

DEBIAN = """
openssl_conf = openssl_init
[openssl_init]
providers = provider_sect
ssl_conf = ssl_sect
[provider_sect]
default = default_sect
# legacy = legacy_sect
[default_sect]
# activate = 1
[ssl_sect]
system_default = system_default_sect
[system_default_sect]
MinProtocol = TLSv1.2
CipherString = DEFAULT:@SECLEVEL=2
"""
OWN_NAMES = """
openssl_conf = ours
.include {include}
[ours]
providers = our_providers
alg_section = our_algorithms
[our_algorithms]
default_properties = ?fips=no
[our_providers]
base = base_sect
[base_sect]
activate = 1
"""
FILES = {"debian": DEBIAN, "own names": OWN_NAMES, "empty": "", "no sections": "x = y\n",
         "other things": "[req]\ndefault_bits = 2048\n", "comment": "# nothing\n"}


def openssl(*args, conf):
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    return subprocess.run(["openssl", *args], check=True, text=True, capture_output=True,
                          env=dict(os.environ, OPENSSL_CONF=str(conf),
                                   OPENSSL_MODULES=str(MODULE))).stdout


def providers(conf):
    said = openssl("list", "-providers", conf=conf)
    return set(re.findall(r"^  (\w+)$", said, re.M))


@pytest.fixture(params=FILES)
def own(request, tmp_path):
    more = tmp_path / "more.cnf"
    more.write_text("[included]\na = b\n")
    path = tmp_path / "own.cnf"
    path.write_text(FILES[request.param].replace("{include}", str(more)))
    return path


def make(own, tmp_path, *args):
    out = tmp_path / "out.cnf"
    ctl("openssl-conf", "--in", own, "--out", out, *args)
    return out


def test_what_openssl_makes_of_it(own, tmp_path):
    if not (MODULE / "mlkemd.so").exists():
        pytest.skip("the provider was not built")
    before = providers(own)
    after = providers(make(own, tmp_path))
    assert after >= before | {"default", "mlkemd"}


def test_control_a_bare_replacement_loses_the_default(tmp_path):
    """What this command is there to avoid."""
    if not (MODULE / "mlkemd.so").exists():
        pytest.skip("the provider was not built")
    bare = tmp_path / "bare.cnf"
    bare.write_text("openssl_conf = i\n[i]\nproviders = p\n[p]\nmlkemd = m\n[m]\n"
                    "activate = 1\n")
    assert providers(bare) == {"mlkemd"}


def test_the_machine_s_own(tmp_path):
    """With nothing said, what OpenSSL itself reads."""
    out = tmp_path / "out.cnf"
    said = ctl("openssl-conf", "--out", out, "--json").object()
    assert said["ok"] and said["out"] == str(out)
    text = out.read_text()
    assert f".include {said['includes']}" in text or not said["includes"]
    assert out.stat().st_mode & 0o777 == 0o644
    if (MODULE / "mlkemd.so").exists():
        assert {"default", "mlkemd"} <= providers(out)
        assert openssl("version", conf=out).startswith("OpenSSL 3")


def test_other_settings_stay(tmp_path):
    own = tmp_path / "own.cnf"
    own.write_text(DEBIAN)
    text = make(own, tmp_path).read_text()
    assert re.search(r"^\[system_default_sect\]\nGroups = X25519MLKEM768:", text, re.M)
    assert re.search(r"^\[default_sect\]\nactivate = 1", text, re.M)
    assert "MinProtocol" not in text  # it comes by the include
    text = make(own, tmp_path, "--groups", "").read_text()
    assert "Groups" not in text


def test_keys_of_the_provider(tmp_path):
    own = tmp_path / "own.cnf"
    own.write_text(DEBIAN)
    text = make(own, tmp_path, "--socket", "/run/x/y.sock", "--set", "route=daemon",
                "--set", "deadline=5ms", "--set", "takeover=yes").read_text()
    section = text.partition("[mlkemd_sect]")[2].partition("\n\n")[0]
    assert "socket = /run/x/y.sock" in section and "route = daemon" in section
    assert "deadline = 5ms" in section and "takeover = yes" in section
    assert "default_properties = ?provider=mlkemd" in text


def test_takeover_keeps_other_properties(tmp_path):
    own = tmp_path / "own.cnf"
    own.write_text(OWN_NAMES.replace(".include {include}", ""))
    text = make(own, tmp_path, "--set", "takeover=yes").read_text()
    assert "[our_algorithms]\ndefault_properties = ?fips=no,?provider=mlkemd" in text


def test_remarks(tmp_path):
    own = tmp_path / "own.cnf"
    own.write_text(DEBIAN.replace("MinProtocol", "Groups = P-256\nMinProtocol").replace(
        "# legacy", "fips = fips_sect\n#"))
    said = ctl("openssl-conf", "--in", own)
    assert "P-256, are replaced" in said.err and "FIPS" in said.err


def test_made_twice_or_onto_itself(tmp_path):
    own = tmp_path / "own.cnf"
    own.write_text(DEBIAN)
    out = make(own, tmp_path)
    assert "already" in ctl("openssl-conf", "--in", out, status=USAGE).err
    ctl("openssl-conf", "--in", own, "--out", own, status=USAGE)
    assert own.read_text() == DEBIAN
    link = tmp_path / "link.cnf"
    link.symlink_to(own)
    ctl("openssl-conf", "--in", link, "--out", own, status=USAGE)
    assert make(own, tmp_path).read_text() == out.read_text()


def test_files_that_do_not_work(tmp_path):
    own = tmp_path / "own.cnf"
    own.write_text("[broken\nx")
    out = tmp_path / "out.cnf"
    said = ctl("openssl-conf", "--in", own, "--out", out, status=FAILED)
    assert "line 1" in said.err and not out.exists()
    ctl("openssl-conf", "--in", tmp_path / "none", status=FAILED)
    own.write_text("")
    ctl("openssl-conf", "--in", own, "--out", tmp_path / "no" / "out", status=FAILED)


@pytest.mark.parametrize("args", [["--set", "a=b"], ["--set", "route"],
                                  ["--set", "route="], ["--set", "route=a\nb=c"],
                                  ["--groups", "?X25519MLKEM768"], ["--groups", "*P-256"],
                                  ["--socket", "/a\nb"], ["--json"], ["x"],
                                  ["--set", "route=$ENV::HOME"]])
def test_wrong_usage(args):
    ctl("openssl-conf", *args, status=USAGE)


# What the provider would refuse, or OpenSSL drop: then there is no post-quantum group.
SILENTLY_OFF = [
    (["--set", "route=fast"], "route = fast: allowed are auto, daemon and local"),
    (["--set", "leases=65"], "leases = 65: allowed is a number from 0 to 64"),
    (["--set", "deadline=1h"], "deadline = 1h: allowed is a number with us, ms or s, from"),
    (["--set", "server-uid=root"], "server-uid = root: allowed is the number of a user"),
    (["--set", "require=maybe"], "require = maybe: allowed are yes and no"),
    (["--set", "takeover=perhaps"], "takeover = perhaps: allowed are yes and no"),
    (["--socket", "mlkemd.sock"], "socket = mlkemd.sock: allowed is an absolute path"),
    (["--socket", "/" + 107 * "x"], "of at most 107 bytes"),
    (["--set", "route=local", "--set", "require=yes"],
     "require = yes: with it the route is daemon; auto and local are not allowed"),
    (["--set", "route=auto", "--set", "route=local"], "route is there twice"),
    (["--set", "module=/nonexist/mlkemd.so"], "module = /nonexist/mlkemd.so: cannot read"),
    (["--set", "module=/etc/passwd"], "is no module"),
    (["--set", "module=stranger.so"], "stranger.so: No such file"),
    (["--groups", "X25519MLKEM786:X25519"], 'has a group "X25519MLKEM786"'),
    (["--groups", "X25519MLKEM768:secp265r1"], 'has a group "secp265r1"'),
    (["--groups", "X25519MLKEM768::X25519"], "a name that is empty"),
    (["--groups", "X25519MLKEM768:"], "a name that is empty"),
]


def switched_off(tmp_path, args, sentence):
    own = tmp_path / "own.cnf"
    own.write_text(DEBIAN)
    out = tmp_path / "out.cnf"
    said = ctl("openssl-conf", "--in", own, "--out", out, *args, status=USAGE)
    assert sentence in said.err and not out.exists()


@pytest.mark.parametrize("args,sentence", SILENTLY_OFF)
def test_what_would_switch_it_off(tmp_path, args, sentence):
    switched_off(tmp_path, args, sentence)


@pytest.mark.skipif(not HOOKS, reason="needs a build with -Dtest-hooks=true")
def test_control_a_value_let_through_is_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("MLKEMD_FAULT", "ctl-any-conf-value")
    with pytest.raises(AssertionError):
        switched_off(tmp_path, *SILENTLY_OFF[0])


def test_groups_that_openssl_knows(tmp_path):
    """Every name that it has for them, and those of the provider."""
    own = tmp_path / "own.cnf"
    own.write_text(DEBIAN)
    groups = "x25519mlkem768:MLKEM512:MLKEM768:MLKEM1024:P-256:secp521r1:X448:ffdhe2048"
    assert f"Groups = {groups}" in make(own, tmp_path, "--groups", groups).read_text()
    assert "names no post-quantum" in ctl("openssl-conf", "--in", own, "--groups", "X25519").err
    assert "names no post-quantum" not in ctl("openssl-conf", "--in", own).err


def test_takeover_in_any_spelling(tmp_path):
    own = tmp_path / "own.cnf"
    own.write_text(DEBIAN)
    for value in ("yes", "TRUE", "on", "1"):
        text = make(own, tmp_path, "--set", f"takeover={value}").read_text()
        assert "default_properties = ?provider=mlkemd" in text
    assert "default_prop" not in make(own, tmp_path, "--set", "takeover=no").read_text()


def test_a_module_that_is_not_there_yet(tmp_path):
    own = tmp_path / "own.cnf"
    own.write_text(DEBIAN)
    said = ctl("openssl-conf", "--in", own, env={"OPENSSL_MODULES": str(tmp_path)})
    assert f"{tmp_path}/mlkemd.so: No such file" in said.err
    if (MODULE / "mlkemd.so").exists():
        said = ctl("openssl-conf", "--in", own, env={"OPENSSL_MODULES": str(MODULE)})
        assert "mlkemd.so:" not in said.err
        ctl("openssl-conf", "--in", own, "--set", f"module={MODULE}/mlkemd.so")


def test_what_is_no_openssl_cnf(tmp_path):
    out = tmp_path / "out.cnf"
    large, binary = tmp_path / "large", tmp_path / "binary"
    with open(large, "wb") as file:
        file.truncate(100 << 20)
    binary.write_bytes(b"[a]\nb = c\n\0\n")
    for own, why in ((tmp_path, "is a folder"), (large, "1048576 bytes"),
                     (binary, "is binary"), ("/dev/null", "not a file")):
        said = ctl("openssl-conf", "--in", own, "--out", out, status=FAILED)
        assert why in said.err and not out.exists()


def test_out_that_is_no_file(tmp_path):
    """A device stays one, and "-" is standard output, as everywhere."""
    own = tmp_path / "own.cnf"
    own.write_text(DEBIAN)
    text = ctl("openssl-conf", "--in", own).out
    assert ctl("openssl-conf", "--in", own, "--out", "-", cwd=tmp_path).out == text
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE)
    ctl("openssl-conf", "--in", own, "--out", pipe)
    assert reader.communicate(timeout=60)[0].decode() == text and pipe.is_fifo()
    assert not (tmp_path / "-").exists()
