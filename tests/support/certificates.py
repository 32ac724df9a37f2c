"""Certificates for a test: made by openssl, good for two days."""

import subprocess
from pathlib import Path

_HOST = "127.0.0.1"


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def make_certificates(directory: Path) -> None:
    """A CA, and a certificate with its key in one PEM file for the broker and for the client."""
    directory.mkdir()
    key = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    ca_key, ca = directory / "ca.key", directory / "ca.pem"
    openssl("req", "-x509", *key, "-subj", "/CN=test CA", "-keyout", ca_key, "-out", ca)
    openssl(
        *("req", "-x509", *key, "-subj", "/CN=other CA"),
        *("-keyout", directory / "other.key", "-out", directory / "other-ca.pem"),
    )
    for name in ("broker", "client"):
        files = {kind: directory / f"{name}.{kind}" for kind in ("key", "csr", "crt", "ext")}
        files["ext"].write_text(f"subjectAltName=IP:{_HOST}\n")
        request = ("req", *key[:3], "-subj", f"/CN={name}")
        openssl(*request, "-keyout", files["key"], "-out", files["csr"])
        openssl(
            *("x509", "-req", "-in", files["csr"], "-CA", ca, "-CAkey", ca_key, "-days", "2"),
            *("-CAcreateserial", "-extfile", files["ext"], "-out", files["crt"]),
        )
        pem = files["key"].read_text() + files["crt"].read_text() + ca.read_text()
        (directory / f"{name}.pem").write_text(pem)
