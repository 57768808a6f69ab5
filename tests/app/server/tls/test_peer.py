"""Who a client is."""

from app.server.tls import peer_names


def test_common_names_and_dns_names_are_names() -> None:
    certificate = {
        "subject": ((("organizationName", "acme"),), (("commonName", "system:kube-scheduler"),)),
        "subjectAltName": (("DNS", "scheduler.example"), ("IP Address", "10.0.0.1"), ("DNS", "s2")),
    }
    assert peer_names(certificate) == ("system:kube-scheduler", "scheduler.example", "s2")


def test_a_certificate_may_have_no_name() -> None:
    assert peer_names({"issuer": ((("commonName", "ca"),),)}) == ()
