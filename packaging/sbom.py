#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""An SPDX 2.3 bill of materials: sbom.py BUILD SOURCE OUTPUT PROGRAM...

What this project is, each PROGRAM that it installs, and the libraries that these are
linked with, as their ELF headers say; versions come from meson's introspection of BUILD.
Nothing of the time or place of the build goes in: two builds of one source give the same
bytes. A library that is not in LIBRARIES (another libc, a sanitizer's run-time) is written
by its soname with NOASSERTION for what is not known of it, and a warning says so.
"""

import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

# soname -> (project, dependency of meson.build that knows its version, licence)
LIBRARIES = {
    "libc.so.6": ("glibc", None, "LGPL-2.1-or-later"),
    "libm.so.6": ("glibc", None, "LGPL-2.1-or-later"),
    "ld-linux": ("glibc", None, "LGPL-2.1-or-later"),
    "libcrypto.so": ("openssl", "libcrypto", "Apache-2.0"),
    "libssl.so": ("openssl", "libcrypto", "Apache-2.0"),
    "libevent_core": ("libevent", "libevent_core", "BSD-3-Clause"),
    "libevent_extra": ("libevent", "libevent_extra", "BSD-3-Clause"),
    "libprotobuf-c.so": ("protobuf-c", "libprotobuf-c", "BSD-2-Clause"),
    "libseccomp.so": ("libseccomp", "libseccomp", "LGPL-2.1-only"),
}
UNKNOWN = "NOASSERTION"
OURS = "Apache-2.0 AND (Apache-2.0 OR MIT)"
PURPOSE = {True: "LIBRARY", False: "APPLICATION"}


def introspected(build, what):
    return json.loads((build / "meson-info" / f"intro-{what}.json").read_text())


def created(source):
    """SOURCE_DATE_EPOCH, else the last commit's time, else that of the news."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        commit = subprocess.run(["git", "-C", source, "log", "-1", "--format=%ct"],
                                check=False, capture_output=True, text=True)
        epoch = commit.stdout.strip() or (source / "NEWS.md").stat().st_mtime
    when = datetime.datetime.fromtimestamp(int(float(epoch)), datetime.timezone.utc)
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def needed(program):
    """The sonames that a program is linked with."""
    text = subprocess.run(["readelf", "-dW", program], check=True, capture_output=True,
                          text=True, env={**os.environ, "LC_ALL": "C"}).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", text)


def library_of(soname):
    for start, row in LIBRARIES.items():
        if soname.startswith(start):
            return row
    print(f"sbom: warning: {soname} is not in the table of packaging/sbom.py: its version "
          "and licence are left open", file=sys.stderr)
    return soname, None, UNKNOWN


def spdx_id(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def package(name, version, licence, purpose, ours):
    row = {
        "SPDXID": spdx_id(name),
        "name": name,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": purpose,
        "licenseConcluded": licence,
        "licenseDeclared": licence,
        "copyrightText": "2026 The mlkemd contributors" if ours else "NOASSERTION",
    }
    if not ours and version != UNKNOWN:
        row["externalRefs"] = [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:generic/{name}@{version}"}]
    return row


def related(one, how, other):
    return {"spdxElementId": spdx_id(one), "relationshipType": how,
            "relatedSpdxElement": spdx_id(other)}


def version_of(project, dependency, versions):
    if dependency is not None:
        return versions.get(dependency, UNKNOWN)
    return os.confstr("CS_GNU_LIBC_VERSION").split()[-1] if project == "glibc" else UNKNOWN


def bill(build, source, programs):
    project = introspected(build, "projectinfo")
    versions = {row["name"]: row["version"] for row in introspected(build, "dependencies")}
    name, version = project["descriptive_name"], project["version"]
    packages = [package(name + "-source", version, OURS, "SOURCE", True)]
    relations = [related("DOCUMENT", "DESCRIBES", name + "-source")]
    libraries = {}
    for program in programs:
        mine = program.name
        sonames = needed(program)
        packages.append(package(mine, version, OURS, PURPOSE[".so" in mine], True))
        relations.append(related(mine, "GENERATED_FROM", name + "-source"))
        links = {library_of(soname): "DYNAMIC_LINK" for soname in sonames}
        if mine == "mlkemd.so" and not any("protobuf-c" in soname for soname in sonames):
            links[LIBRARIES["libprotobuf-c.so"]] = "STATIC_LINK"
        for row, how in sorted(links.items()):
            libraries[row[0]] = row
            relations.append(related(mine, how, row[0]))
    for row in sorted(libraries.values(), key=lambda row: row[0]):
        packages.append(package(row[0], version_of(row[0], row[1], versions), row[2],
                                "LIBRARY", False))
    packages[1:] = sorted(packages[1:], key=lambda row: row["name"])
    relations = list({json.dumps(row): row for row in relations}.values())
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}",
        "creationInfo": {"created": created(source),
                         "creators": [f"Tool: {name}-sbom-{version}"]},
        "packages": packages,
        "relationships": relations,
    }
    content = json.dumps(document, sort_keys=True)
    document["documentNamespace"] = uuid.uuid5(uuid.NAMESPACE_OID, content).urn
    return document


def main():
    build, source, output, *programs = map(pathlib.Path, sys.argv[1:])
    document = bill(build, source, sorted(programs, key=lambda path: path.name))
    output.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
