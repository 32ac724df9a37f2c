"""MariaDB's own: what a CA in the URL means for the connection."""

import shutil
import ssl
import subprocess
from pathlib import Path

import pymysql
import pytest

from headrace.pipelines.sinks.sql.address import Address, parse_address
from headrace.pipelines.sinks.sql.mariadb import Mariadb


def an_address(url: str) -> Address:
    return parse_address(url, frozenset())[0]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl for a certificate")
def test_with_a_ca_the_server_must_prove_who_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = tmp_path / "ca.pem"
    request = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test CA")
    files = ("-keyout", tmp_path / "ca.key", "-out", ca)
    subprocess.run([*request, *files], check=True, capture_output=True)

    def without_a_server(**settings: object) -> object:
        return pymysql.Connection(defer_connect=True, **settings)

    monkeypatch.setattr(pymysql, "connect", without_a_server)

    connection = Mariadb().connect(an_address(f"mariadb://u@h/d?ssl-ca={ca}"))

    assert connection.ctx.verify_mode == ssl.CERT_REQUIRED
    assert connection.ctx.check_hostname


def test_a_certificate_that_proves_nothing_is_told_and_not_tried_again() -> None:
    error = pymysql.err.OperationalError(2003, "Can't connect (certificate verify failed)")
    error.original_exception = ssl.SSLCertVerificationError("certificate verify failed")

    fault = Mariadb().fault(error, an_address("mariadb://u@h/d"))

    assert "could not prove that it is h" in fault.sentence
    assert not fault.is_transient
