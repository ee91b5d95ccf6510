# SPDX-License-Identifier: Apache-2.0
"""The bill of materials is SPDX 2.3 and says what the programs of this build say."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["MLKEMD_BUILD"])
PROGRAMS = {"mlkemd": "daemon/mlkemd", "mlkemctl": "tools/mlkemctl",
            "mlkem-bench": "tools/mlkem-bench/mlkem-bench",
            "mlkem-ct": "tools/mlkem-ct/mlkem-ct", "mlkemd.so": "provider/mlkemd.so",
            "libmlkemclient.so": "client-lib/libmlkemclient.so"}
# What SPDX 2.3, clauses 6 and 7, asks of a document and of a package.
DOCUMENT = {"spdxVersion": r"SPDX-2\.3", "dataLicense": r"CC0-1\.0",
            "SPDXID": "SPDXRef-DOCUMENT", "name": r"mlkemd-\S+",
            "documentNamespace": r"[a-z]+:[^\s#]+"}
PACKAGE = {"SPDXID": r"SPDXRef-[A-Za-z0-9.-]+", "name": r"\S+", "versionInfo": r"\S+",
           "downloadLocation": r"NOASSERTION|\S+://\S+", "copyrightText": ".+",
           "licenseConcluded": r"[A-Za-z0-9.() -]+",
           "licenseDeclared": r"[A-Za-z0-9.() -]+"}


def faults(document):
    """What is wrong with a document, as sentences."""
    found = []
    for rows, shape in (([document], DOCUMENT), (document["packages"], PACKAGE)):
        for row in rows:
            for key, pattern in shape.items():
                if not re.fullmatch(pattern, str(row.get(key, ""))):
                    found.append(f"{row.get('name')}: {key} is {row.get(key)!r}")
    ids = [document["SPDXID"]] + [row["SPDXID"] for row in document["packages"]]
    found += [f"{one} is there twice" for one in set(ids) if ids.count(one) > 1]
    for row in document["relationships"]:
        for key in ("spdxElementId", "relatedSpdxElement"):
            if row[key] not in ids:
                found.append(f"{row[key]} is nowhere")
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
                        document["creationInfo"]["created"]):
        found.append("created is no time")
    return found


def linked(document, program):
    """{(relation, library)} of a program; a library's name has its version behind it."""
    return {(row["relationshipType"], row["relatedSpdxElement"][len("SPDXRef-"):])
            for row in document["relationships"]
            if re.fullmatch(rf"SPDXRef-{re.escape(program)}(\.\d+)*",
                            row["spdxElementId"]) and "LINK" in row["relationshipType"]}


def needs(path):
    said = subprocess.run(["ldd", path], check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in said.splitlines() if "=>" in line}


@pytest.fixture
def document():
    return json.loads((BUILD / "packaging/mlkemd.spdx.json").read_text())


def test_it_is_spdx(document):
    assert faults(document) == []


def test_control_faults_are_found(document):
    document["packages"][0]["licenseDeclared"] = ""
    document["packages"][1]["SPDXID"] = "SPDXRef-mlkemd"
    document["spdxVersion"] = "SPDX-9"
    assert len(faults(document)) >= 4


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_names_what_a_program_is_linked_with(document, program):
    path = BUILD / PROGRAMS[program]
    if not path.exists():
        pytest.skip("not in this build")
    links = linked(document, program)
    asked = needs(path)
    for soname, project in (("libcrypto.so.3", "openssl"),
                            ("libseccomp.so.2", "libseccomp"),
                            ("libprotobuf-c.so.1", "protobuf-c")):
        assert (soname in asked) == (("DYNAMIC_LINK", project) in links), (soname, links)
    assert any(name.startswith("libevent") for name in asked) == (
        ("DYNAMIC_LINK", "libevent") in links)
    assert ("DYNAMIC_LINK", "glibc") in links
    if program == "mlkemd.so" and "libprotobuf-c.so.1" not in asked:
        assert ("STATIC_LINK", "protobuf-c") in links


def test_versions_are_those_of_the_libraries(document):
    versions = {row["name"]: row["versionInfo"] for row in document["packages"]}
    for project, module in (("openssl", "libcrypto"), ("protobuf-c", "libprotobuf-c")):
        asked = subprocess.run(["pkg-config", "--modversion", module], check=True,
                               capture_output=True, text=True).stdout.strip()
        assert versions[project] == asked


def sbom(output, *programs, epoch="1"):
    return subprocess.run([sys.executable, ROOT / "packaging/sbom.py", BUILD, ROOT, output,
                           *programs], check=False, capture_output=True, text=True,
                          env={**os.environ, "SOURCE_DATE_EPOCH": epoch})


def test_it_is_the_same_each_time(tmp_path):
    for name, epoch in (("a", "1"), ("b", "1"), ("c", "2")):
        done = sbom(tmp_path / name, BUILD / "daemon/mlkemd", epoch=epoch)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def stranger(tmp_path, soname):
    """A program that is linked with a library of that soname."""
    (tmp_path / "x.c").write_text("int event_base_new(void);int main(void)"
                                  "{return event_base_new();}")
    (tmp_path / "libstranger.c").write_text("int event_base_new(void){return 0;}")
    for command in (["cc", "-shared", "-fPIC", f"-Wl,-soname,{soname}", "libstranger.c",
                     "-o", "libstranger.so"],
                    ["cc", "x.c", "-o", "x", "./libstranger.so"]):
        subprocess.run(command, check=True, cwd=tmp_path)
    return tmp_path / "x"


@pytest.mark.parametrize("soname", ["libstranger.so.1", "libgcc_s.so.1",
                                    "libc.musl-x86_64.so.1", "libc.so"])
def test_an_unknown_library_is_written_as_such(tmp_path, soname):
    """A sanitizer's run-time or another libc ends no build, and is not given a licence."""
    done = sbom(tmp_path / "out", stranger(tmp_path, soname))
    assert done.returncode == 0, done.stderr
    assert f"warning: {soname} is not in the table" in done.stderr
    document = json.loads((tmp_path / "out").read_text())
    assert faults(document) == []
    (row,) = [row for row in document["packages"] if row["name"] == soname]
    assert {row[key] for key in ("versionInfo", "licenseConcluded", "licenseDeclared")} == {
        "NOASSERTION"}
    assert "externalRefs" not in row
    assert ("DYNAMIC_LINK", soname.replace("_", "-")) in linked(document, "x")


def test_control_a_known_library_is_no_warning(tmp_path):
    done = sbom(tmp_path / "out", stranger(tmp_path, "libseccomp.so.2"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "libseccomp.so.2" not in (tmp_path / "out").read_text()
