#!/usr/bin/env python3
"""Packs what is committed: a tarball, its SBOM, and the distinfo of the port for FreeBSD.

    dist.py VERSION DIR

The same commit gives the same bytes: times are the commit's, or SOURCE_DATE_EPOCH, gzip keeps
no name, and nothing is asked of the machine.
"""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import time

TABLE = "## To run the server"  # of docs/dependencies.md
# What SPDX calls the licences of the table.
LICENCES = {"LGPL-2.1": "LGPL-2.1-or-later", "LGPL-2.1 or MIT": "LGPL-2.1-or-later OR MIT"}
HOST = {"Linux"}  # no package that is linked


def git(*args):
    run = subprocess.run(["git", *args], check=False, stdout=subprocess.PIPE)
    if run.returncode != 0:
        sys.exit("dist: git failed: make dist in a clone that belongs to you")
    return run.stdout


def packed(name, epoch):
    """The commit as a tarball; git gives the files in order."""
    out = io.BytesIO()
    source = tarfile.open(fileobj=io.BytesIO(git("archive", "--format=tar", "HEAD")))
    with gzip.GzipFile("", "wb", 9, out, mtime=epoch) as gz, \
            tarfile.open(fileobj=gz, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for member in source:
            data = source.extractfile(member) if member.isfile() else None
            member.name = f"{name}/{member.name}"
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "root", "root"
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            tar.addfile(member, data)
    return out.getvalue()


def dependencies():
    """(name, version at least, licence, why, Debian's package) of what is linked."""
    text = git("show", "HEAD:docs/dependencies.md").decode()
    rows = re.findall(r"^\| (.*) \|$", text.split(TABLE)[1].split("\n## ")[0], re.M)[2:]
    for row in rows:
        what, version, licence, why, debian = [cell.strip() for cell in row.split("|")][:5]
        if what not in HOST:
            yield what, version, LICENCES.get(licence, licence), why, debian


def sbom(name, version, tarball, epoch):
    digest = hashlib.sha256(tarball).hexdigest()
    top = {"SPDXID": "SPDXRef-pagewise", "name": "pagewise", "versionInfo": version,
           "packageFileName": name + ".tar.gz", "downloadLocation": "NOASSERTION",
           "filesAnalyzed": False, "licenseConcluded": "BSD-2-Clause",
           "licenseDeclared": "BSD-2-Clause", "copyrightText": "Copyright (c) 2026, the pagewise authors",
           "primaryPackagePurpose": "APPLICATION",
           "checksums": [{"algorithm": "SHA256", "checksumValue": digest}]}
    packages, relations = [top], [relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-pagewise")]
    for what, least, licence, why, debian in dependencies():
        ident = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.]+", "-", what).strip("-")
        packages.append({
            "SPDXID": ident, "name": what, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": licence, "copyrightText": "NOASSERTION",
            "comment": f"version {least} or later; {why}", "primaryPackagePurpose": "LIBRARY",
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": f"pkg:deb/debian/{debian}"}]})
        relations.append(relation("SPDXRef-pagewise", "DYNAMIC_LINK", ident))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": name, "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{digest}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
                             "creators": ["Organization: the pagewise authors", "Tool: conf/dist.py"]},
            "packages": packages, "relationships": relations}


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def distinfo(name, tarball, epoch):
    digest = hashlib.sha256(tarball).hexdigest()
    return (f"TIMESTAMP = {epoch}\nSHA256 ({name}.tar.gz) = {digest}\n"
            f"SIZE ({name}.tar.gz) = {len(tarball)}\n").encode()


def committed(path):
    """Of a symbolic link the file that it leads to."""
    data = git("show", "HEAD:" + path)
    if git("ls-tree", "HEAD", path).startswith(b"120000"):
        return committed(os.path.normpath(os.path.join(os.path.dirname(path), data.decode())))
    return data


def main():
    version, where = sys.argv[1:]
    name = "pagewise-" + version
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    if git("status", "--porcelain"):
        print("dist: the working tree has changes that are not packed", file=sys.stderr)
    tarball = packed(name, epoch)
    document = json.dumps(sbom(name, version, tarball, epoch), indent=1, ensure_ascii=False) + "\n"
    files = {name + ".tar.gz": tarball, name + ".spdx.json": document.encode(),
             "freebsd-port/distinfo": distinfo(name, tarball, epoch)}
    # The port with its distinfo, which cannot be in the tarball that it is about.
    for path in git("ls-files", "-z", "conf/freebsd-port").decode().split("\0")[:-1]:
        files[path.removeprefix("conf/")] = committed(path)
    for path, data in files.items():
        path = os.path.join(where, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data)
        print(path)


main()
