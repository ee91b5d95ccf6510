# SPDX-License-Identifier: Apache-2.0
"""mlkemctl without any daemon: values in and out, secrets in files, mistakes."""

import base64
import hashlib
import json
import os
import pty
import socket
import stat
import subprocess
import tempfile
import time

import pytest

from ctl import (DENIED, FAILED, HOOKS, OK, REFUSED, SIZES, UNREACHABLE, USAGE, as_nobody,
                 ctl, finish, start)

MISSING = "/nonexistent/mlkemd.sock"
NO_DAEMON = ("--socket", MISSING, "--control-socket", MISSING)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exported(here, algorithm="X25519MLKEM768", name="k"):
    """A key pair made in this process: (share file, key file)."""
    ctl("keygen", algorithm, "--local", "--export", f"{name}.key", "--out",
        f"{name}.share")
    return here / f"{name}.share", here / f"{name}.key"


@pytest.mark.parametrize("algorithm", SIZES)
def test_exchange_by_files(here, algorithm):
    share, ct, secret, key = SIZES[algorithm]
    share_path, key_path = exported(here, algorithm)
    assert len(share_path.read_bytes()) == share
    assert len(key_path.read_bytes()) == key
    made = ctl("encaps", algorithm, "--local", "--in", share_path, "--out", "ct",
               "--secret-out", "a")
    opened = ctl("decaps", algorithm, "--local", "--key", key_path, "--in", "ct",
                 "--secret-out", "b")
    assert len((here / "ct").read_bytes()) == ct
    assert (here / "a").read_bytes() == (here / "b").read_bytes()
    assert len((here / "a").read_bytes()) == secret
    expected = hashlib.sha256((here / "a").read_bytes()).hexdigest()[:16]
    assert made.fingerprint() == opened.fingerprint() == expected


@pytest.mark.parametrize("spelling", ["mlkem768", "ML-KEM-768", "ML_KEM_768"])
def test_spellings(here, spelling):
    result = ctl("keygen", spelling, "--local", "--export", "key")
    assert len(result.value("share")) == 2 * SIZES["ML-KEM-768"][0]


def test_no_algorithm_is_the_hybrid(here):
    result = ctl("keygen", "--local", "--export", "key")
    assert len(result.value("share")) == 2 * SIZES["X25519MLKEM768"][0]


@pytest.mark.parametrize("form", ["hex", "base64", "raw"])
def test_formats_in_and_out(here, form):
    share_path, key_path = exported(here)
    share = share_path.read_bytes()
    given = {"hex": share.hex().upper().encode(), "raw": share,
             "base64": base64.encodebytes(share)}[form]
    for more in ((), ("--in-format", form)):
        result = ctl("encaps", "--local", "--format", form, *more, given=given)
        if form == "raw":
            ct = result.raw
            assert "fingerprint" in result.err
        elif form == "hex":
            ct = bytes.fromhex(result.value("ciphertext"))
        else:
            ct = base64.b64decode(result.value("ciphertext"), validate=True)
        assert len(ct) == SIZES["X25519MLKEM768"][1]
        opened = ctl("decaps", "--local", "--key", key_path, given=ct)
        assert opened.fingerprint() == result.fingerprint()


def test_key_file_in_any_format(here):
    share_path, key_path = exported(here)
    made = ctl("encaps", "--local", "--in", share_path, "--out", "ct")
    raw = key_path.read_bytes()
    for text in (raw.hex().encode(), base64.b64encode(raw), base64.encodebytes(raw),
                 base64.urlsafe_b64encode(raw).rstrip(b"=")):
        key_path.write_bytes(text)
        opened = ctl("decaps", "--local", "--key", key_path, "--in", "ct")
        assert opened.fingerprint() == made.fingerprint()


def test_files_hold_the_format_asked_for(here):
    ctl("keygen", "--local", "--export", "key", "--out", "share", "--format", "hex")
    assert len(bytes.fromhex((here / "share").read_text())) == 1216
    assert len(bytes.fromhex((here / "key").read_text())) == 2432
    ctl("keygen", "--local", "--export", "key", "--out", "share", "--format", "base64")
    assert len(base64.b64decode((here / "key").read_text(), validate=False)) == 2432


def test_own_output_is_read_back_with_its_label(here):
    keygen = ctl("keygen", "--local", "--export", "key")
    made = ctl("encaps", "--local", given=keygen.raw)
    (here / "answer").write_bytes(made.raw)
    opened = ctl("decaps", "--local", "--key", "key", "--in", "answer")
    assert opened.fingerprint() == made.fingerprint()


def test_keygen_waits_for_standard_input_that_stays_open(here):
    keygen = start("keygen", "--local")
    share = keygen.stdout.readline()
    made = ctl("encaps", "--local", given=share)
    keygen.stdin.write(made.value("ciphertext").encode() + b"\n")
    keygen.stdin.flush()
    line = keygen.stdout.readline().decode()
    assert line == f"fingerprint: {made.fingerprint()}\n"
    assert finish(keygen).status == OK


def test_keygen_waits_for_a_file(here):
    keygen = start("keygen", "--local", "--out", "share", "--peer", "answer",
                   "--secret-out", "secret")
    end = time.monotonic() + 20
    while not (here / "share").exists() and time.monotonic() < end:
        time.sleep(0.02)
    made = ctl("encaps", "--local", "--in", "share", "--out", "answer")
    result = finish(keygen)
    assert result.status == OK and result.fingerprint() == made.fingerprint()
    assert "older" not in result.err


def test_named_pipes(here):
    os.mkfifo("share")
    os.mkfifo("answer")
    keygen = start("keygen", "--local", "--out", "share", "--peer", "answer")
    made = ctl("encaps", "--local", "--in", "share", "--out", "answer")
    assert finish(keygen).fingerprint() == made.fingerprint()
    assert stat.S_ISFIFO(os.stat("share").st_mode)


def test_an_answer_older_than_the_key_is_noticed(here):
    (here / "answer").write_bytes(bytes([200]) * 1120)
    result = ctl("keygen", "--local", "--peer", "answer")
    assert "older" in result.err


def test_a_person_pastes_at_a_terminal(here):
    keygen = ctl("keygen", "mlkem512", "--local", "--export", "key")
    ours, theirs = pty.openpty()
    encaps = start("encaps", "mlkem512", "--local", stdin=theirs)
    os.close(theirs)
    os.write(ours, keygen.value("share").encode() + b"\n")
    result = finish(encaps)
    os.close(ours)
    assert result.status == OK and "paste" in result.err


def test_flipped_bit_is_another_secret_and_no_error(here):
    share_path, key_path = exported(here)
    made = ctl("encaps", "--local", "--in", share_path, "--out", "ct")
    ct = bytearray((here / "ct").read_bytes())
    ct[100] ^= 1
    opened = ctl("decaps", "--local", "--key", key_path, given=bytes(ct))
    assert opened.fingerprint() != made.fingerprint()
    assert opened.err == ""


def test_json(here):
    keygen = ctl("keygen", "--local", "--export", "key", "--json").object()
    assert keygen["ok"] is True and keygen["algorithm"] == "X25519MLKEM768"
    made = ctl("encaps", "--local", "--json", given=keygen["share"]).object()
    opened = ctl("decaps", "--local", "--json", "--key", "key",
                 given=made["ciphertext"]).object()
    assert opened["fingerprint"] == made["fingerprint"]
    assert opened["secret_bytes"] == 64 and made["computed_in"] == "process"
    wrong = ctl("encaps", "--local", "--json", given="00", status=REFUSED).object()
    assert wrong["ok"] is False and wrong["exit_status"] == REFUSED
    wrong = ctl("--json", "frobnicate", status=USAGE).object()
    assert wrong["error"] == "usage"
    process = start("keygen", "--local", "--json")
    first = process.stdout.readline()
    made = ctl("encaps", "--local", "--json", given=json.loads(first)["share"])
    result = finish(process, made.object()["ciphertext"].encode())
    assert result.object()["fingerprint"] == made.object()["fingerprint"]


@pytest.mark.parametrize("algorithm,given,words", [
    ("X25519MLKEM768", bytes(1184), ("1184", "1216", "ML-KEM-768")),
    ("mlkem768", bytes(1216), ("1216", "1184")),
    ("mlkem768", bytes(1183), ("1183", "1184")),
    ("mlkem768", b"", ("1184",)),
    ("mlkem768", b"\xff" * 1184, ()),
    ("mlkem768", b"ab" * 1183 + b"a", ("half a byte",)),
])
def test_bad_shares_are_refused(here, algorithm, given, words):
    result = ctl("encaps", algorithm, "--local", "--secret-out", "s", given=given,
                 status=REFUSED)
    for word in words:
        assert word in result.err
    assert result.raw == b"" and not (here / "s").exists()


def test_wrong_format_is_named(here):
    result = ctl("encaps", "--local", "--in-format", "hex", given=b"xyz\n",
                 status=REFUSED)
    assert "hex" in result.err and "base64" in result.err
    result = ctl("encaps", "--local", given=b"\x00" * 20000, status=REFUSED)
    assert "1216" in result.err


def test_bad_keys_are_refused(here):
    share_path, key_path = exported(here, "ML-KEM-768")
    ctl("encaps", "mlkem768", "--local", "--in", share_path, "--out", "ct")
    key = bytearray(key_path.read_bytes())
    result = ctl("decaps", "--local", "--key", key_path, "--in", "ct", status=REFUSED)
    assert "ML-KEM-768" in result.err and "X25519MLKEM768" in result.err
    key[2400 - 64] ^= 1  # H(ek), FIPS 203 7.3
    key_path.write_bytes(key)
    ctl("decaps", "mlkem768", "--local", "--key", key_path, "--in", "ct",
        status=REFUSED)
    key_path.write_bytes(key[:-1])
    result = ctl("decaps", "mlkem768", "--local", "--key", key_path, "--in", "ct",
                 status=REFUSED)
    assert "2399" in result.err and "2400" in result.err


def test_decaps_without_a_key_teaches(here):
    result = ctl("decaps", status=USAGE)
    for word in ("--key", "export-private-keys", "[kem]", "keygen --export"):
        assert word in result.err


def test_secret_files_are_0600_and_replaced_in_one_step(here):
    old_umask = os.umask(0)
    try:
        share_path, key_path = exported(here)
        (here / "s").write_text("old")
        os.chmod("s", 0o666)
        before = os.stat("s").st_ino
        ctl("encaps", "--local", "--in", share_path, "--secret-out", "s")
        assert stat.S_IMODE(os.stat("s").st_mode) == 0o600
        assert stat.S_IMODE(os.stat(key_path).st_mode) == 0o600
        assert os.stat("s").st_ino != before
        assert stat.S_IMODE(os.stat(share_path).st_mode) == 0o644
    finally:
        os.umask(old_umask)
    assert sorted(p.name for p in here.iterdir()) == ["k.key", "k.share", "s"]


@pytest.mark.parametrize("args,local", [
    (("ping",), False), (("demo",), False), (("bench", "--duration-ms", "10"), False),
    (("info",), True), (("keygen", "--require"), False)])
def test_advice_is_what_the_command_takes(here, args, local):
    said = ctl(*args, "--socket", MISSING, status=UNREACHABLE).err
    assert "is mlkemd running there? (--socket names another" in said
    assert ("--local" in said) == local
    assert f"{args[0]}: {args[0]}:" not in said
    assert said.startswith(f"mlkemctl {args[0]}: ")


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


ONE_FILE = {
    "keygen": (("keygen", "--export", "new", "--out", "new"), "--out and --export"),
    "keygen spelt": (("keygen", "--export", "new", "--out", "./new"),
                     "--out and --export"),
    "keygen peer": (("keygen", "--out", "new", "--peer", "new"), "--peer and --out"),
    "decaps": (("decaps", "--in", "ct", "--key", "k.key", "--secret-out", "k.key"),
               "--key and --secret-out"),
    "decaps link": (("decaps", "--in", "ct", "--key", "k.key", "--secret-out", "hard"),
                    "--key and --secret-out"),
    "decaps in": (("decaps", "--in", "ct", "--key", "k.key", "--secret-out", "ct"),
                  "--in and --secret-out"),
    "encaps": (("encaps", "--in", "k.share", "--out", "new", "--secret-out", "new"),
               "--out and --secret-out"),
    "encaps over": (("encaps", "--in", "k.share", "--out", "k.share"),
                    "--in and --out"),
    "encaps linked": (("encaps", "--in", "k.share", "--out", "soft"), "--in and --out"),
}


@pytest.mark.parametrize("case", ONE_FILE)
def test_two_options_that_name_one_file(here, case):
    """Else one of them would be all that is left of a key, a secret or a share."""
    exported(here)
    ctl("encaps", "--local", "--in", "k.share", "--out", "ct")
    os.link("k.key", "hard")
    os.symlink("k.share", "soft")
    before = contents(here)
    (command, *options), named = ONE_FILE[case]
    said = ctl(command, "--local", *options, status=USAGE)
    assert named in said.err
    assert contents(here) == before


def test_a_stream_that_is_the_file_of_an_option(here):
    exported(here)
    share = (here / "k.share").read_bytes()
    with open("k.share", "rb") as stream:
        process = start("encaps", "--local", "--out", "k.share", stdin=stream)
        assert "standard input" in finish(process).err
    assert process.returncode == USAGE and (here / "k.share").read_bytes() == share


@pytest.mark.parametrize("out", [".", "none/out"])
def test_an_out_that_cannot_be_is_told_before_a_secret_is_made(here, out):
    exported(here)
    before = contents(here)
    for args in (("keygen", "--export", "new"),
                 ("encaps", "--in", "k.share", "--secret-out", "new")):
        said = ctl(*args, "--local", "--out", out, status=FAILED)
        assert f"cannot write --out {out}" in said.err
    assert contents(here) == before


def test_one_device_may_be_named_twice(here):
    """Control: what loses nothing is let through."""
    exported(here)
    ctl("encaps", "--local", "--in", "/dev/stdin", "--out", "/dev/null",
        given=(here / "k.share").read_bytes())
    ctl("keygen", "--local", "--export", "a", "--out", "b")
    assert not os.path.isfile("/dev/null")


@pytest.mark.skipif(not HOOKS, reason="needs a build with -Dtest-hooks=true")
@pytest.mark.parametrize("fault,control", [
    ("ctl-one-file", lambda here: test_two_options_that_name_one_file(here, "decaps")),
    ("ctl-wide-secret", test_secret_files_are_0600_and_replaced_in_one_step),
    ("ctl-fingerprint-is-secret", lambda here: test_exchange_by_files(
        here, "ML-KEM-768")),
])
def test_control_planted_faults_are_seen(here, monkeypatch, fault, control):
    monkeypatch.setenv("MLKEMD_FAULT", fault)
    with pytest.raises(AssertionError):
        control(here)


def test_secrets_go_to_regular_files_only(here):
    share_path, _ = exported(here)
    os.mkfifo("pipe")
    (here / "target").write_text("x")
    os.symlink("target", "link")
    encaps = ("encaps", "--local", "--in", share_path, "--secret-out")
    for path in ("/dev/stdout", "/dev/null", "pipe", "link", "/nonexistent/s",
                 str(here)):
        result = ctl(*encaps, path, status=FAILED)
        assert path in result.err and "ciphertext" not in result.out
    ctl(*encaps, "-", status=USAGE)
    assert (here / "target").read_text() == "x"


def test_a_secret_is_never_printed(here):
    share_path, key_path = exported(here)
    for more in ((), ("--json",), ("--format", "base64"), ("--format", "raw")):
        if more == ("--format", "raw"):
            more += ("--out", "-")
        made = ctl("encaps", "--local", "--in", share_path, "--secret-out", "s", *more)
        secret = (here / "s").read_bytes()
        if more[:1] == ("--format",) and more[1] == "base64":
            secret = base64.b64decode(secret)
        said = made.raw + made.err.encode()
        # No eight bytes of it, in any form that we write.
        for i in range(len(secret) - 8):
            piece = secret[i:i + 8]
            assert piece not in said and piece.hex().encode() not in said.lower()
        assert base64.b64encode(secret)[:40] not in said


@pytest.mark.parametrize("args", [
    ("decaps", "--key", "ab" * 64),
    ("decaps", "--secret", "ab" * 64),
    ("decaps", "--private-key=" + "ab" * 64),
    ("keygen", "--seed", "ab" * 64),
    ("encaps", "ab" * 1216),
    ("ab" * 64,),
    ("decaps", "mlkem768", "ab" * 64),
    ("--" + "ab" * 64,),
])
def test_secrets_on_the_command_line_are_refused_and_not_repeated(here, args):
    result = ctl(*args, "--local", status=USAGE)
    assert "abababab" not in result.err
    control = ctl("encaps", "nosuch", "--local", status=USAGE)
    assert "nosuch" in control.err


@pytest.mark.parametrize("args,words", [
    ((), ("help",)),
    (("frobnicate",), ("keygen", "encaps", "drain")),
    (("keygen", "rsa2048"), ("X25519MLKEM768", "ML-KEM-512")),
    (("keygen", "mlkem768", "more"), ("more",)),
    (("ping", "--peer", "x"), ("--peer", "help ping")),
    (("ping", "mlkem768"), ("mlkem768",)),
    (("encaps", "--format", "pem"), ("hex", "base64", "raw")),
    (("ping", "--count", "0"), ("1", "1000000")),
    (("ping", "--count", "1e3"), ("1000000",)),
    (("ping", "--timeout-ms", "-1"), ("--timeout-ms",)),
    (("ping", "--nosuch"), ("--nosuch",)),
    (("ping", "--socket"), ("--socket",)),
    (("ping", "--socket", ""), ("--socket",)),
    (("ping", "--socket", "/" + "s" * 107), ("107", "108")),
    (("stats", "--control-socket", "/" + "s" * 107), ("107", "108")),
    (("encaps", "--local", "--require"), ("--local", "--require")),
    (("encaps", "--json", "--format", "raw"), ("--json",)),
    (("keygen", "--export", "k", "--peer", "p"), ("--export", "--peer")),
    (("decaps", "--key", "-"), ("--key",)),
])
def test_mistakes_name_what_is_allowed(here, args, words):
    result = ctl(*args, status=USAGE)
    for word in words:
        assert word in result.err, result.err


def test_help_teaches():
    whole = ctl("--help")
    assert ctl("help").out == whole.out == ctl("-h").out
    for command in ("ping info keygen encaps decaps selftest stats reload drain resume "
                    "demo").split():
        assert f"\n  {command} " in whole.out
        page = ctl("help", command)
        assert ctl(command, "--help").out == page.out
        assert "$ " in page.out and "mlkemctl" in page.out
        assert all(len(line) <= 88 for line in page.out.splitlines())
    ctl("help", "nosuch", status=USAGE)
    assert "mlkemctl 0." in ctl("--version").out


@pytest.mark.parametrize("args", [
    ("ping",), ("info",), ("stats",), ("reload",), ("drain",), ("resume",),
    ("selftest",), ("demo",), ("encaps", "--require"), ("keygen", "--require")])
def test_no_daemon_is_status_3(here, args):
    share_path, _ = exported(here)
    result = ctl(*args, *[o for o in NO_DAEMON if accepts(args[0], o)],
                 given=share_path.read_bytes(), status=UNREACHABLE)
    assert MISSING in result.err


def accepts(command, word):
    """Which of the two socket options a subcommand takes."""
    control = {"stats", "reload", "drain", "resume", "selftest"}
    if word == "--socket":
        accepts.last = command not in control
    elif word == "--control-socket":
        accepts.last = command in control | {"demo"}
    return accepts.last


def test_without_a_daemon_it_is_computed_here_and_said(here):
    share_path, _ = exported(here)
    result = ctl("encaps", "--socket", MISSING, "--in", share_path)
    assert "in this process" in result.err
    quiet = ctl("encaps", "--local", "--in", share_path)
    assert quiet.err == ""


def test_a_socket_that_may_not_be_opened_is_denied():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        nobody = as_nobody(directory)
        path = os.path.join(directory, "c.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            os.chmod(path, 0o600)
            ctl("stats", "--control-socket", path, status=DENIED, **nobody)


def test_selftest_and_info_of_this_process():
    assert "passed" in ctl("selftest", "--local").out
    assert ctl("selftest", "--local", "--json").object()["passed"] is True
    assert "lane" in ctl("info", "--local").out
    bad = ctl("info", "--local", env={"MLKEMD_BACKEND": "nosuch"}, status=FAILED)
    assert bad.out == ""


def test_a_full_disk_is_an_error():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "wb") as full:
        process = subprocess.run([os.environ["MLKEMD_CTL"], "help"], stdout=full,
                                 stderr=subprocess.PIPE, check=False)
    assert process.returncode == FAILED
