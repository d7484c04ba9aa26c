"""Certificates for the servers of a run, signed by themselves: made once, by openssl."""

import functools
import os
import subprocess
import tempfile

from laboratory import host as machine
from laboratory.limits import read

USUAL = "P-256"
KINDS = {USUAL: ("ec", "ec_paramgen_curve:P-256"), "RSA-2048": ("rsa", "rsa_keygen_bits:2048")}
DAYS = 30


@functools.cache
def pair(kind):
    """A certificate and its key, as PEM."""
    algorithm, option = KINDS[kind]
    with tempfile.TemporaryDirectory(prefix="lab-") as made:
        files = [os.path.join(made, name) for name in ("certificate", "key")]
        subprocess.run(
            [machine.tool("openssl"), "req", "-x509", "-newkey", algorithm, "-pkeyopt", option,
             "-nodes", "-sha256", "-days", str(DAYS), "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-out", files[0], "-keyout", files[1]],
            check=True, timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        return tuple(map(read, files))
