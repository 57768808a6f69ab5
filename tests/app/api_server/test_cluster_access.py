"""URLs of API servers and proxies."""

import pytest

from app.api_server.cluster_access import checked_proxy, checked_url
from app.api_server.credential_errors import ConfigurationError


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h", "https://h"),
        ("https://h:6443/", "https://h:6443"),
        ("HTTPS://h/k8s/clusters/c-1/", "https://h/k8s/clusters/c-1"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("https://10.0.0.1:65535", "https://10.0.0.1:65535"),
    ],
)
def test_the_url_of_a_server_has_no_slash_at_its_end(url: str, expected: str) -> None:
    assert checked_url("server", url) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", "server: required"),
        ("h", "server: 'h' is not a URL that begins with http:// or https://"),
        ("ftp://h", "server: 'ftp://h' is not a URL that begins with http:// or https://"),
        ("https://", "server: 'https://' is not a URL that begins with http:// or https://"),
        ("https://a b", "server: 'https://a b' is not a URL that begins with http:// or https://"),
        ("https://h:65536", "server: 'https://h:65536' is not a URL that begins with http:// or https://"),
        ("https://h:x", "server: 'https://h:x' is not a URL that begins with http:// or https://"),
        ("https://[::1", "server: 'https://[::1' is not a URL that begins with http:// or https://"),
        ("https://joe:secret@h", "server: more than scheme, host, port and path"),
        ("https://h?a=b", "server: more than scheme, host, port and path"),
        ("https://h#a", "server: more than scheme, host, port and path"),
    ],
)
def test_what_is_no_url_of_a_server_is_refused(url: str, expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        checked_url("server", url)
    assert str(caught.value) == expected


def test_a_proxy_may_want_a_password() -> None:
    assert checked_proxy("proxy", "http://joe:secret@h:3128") == "http://joe:secret@h:3128"


@pytest.mark.parametrize("url", ["socks5://joe:secret@h", "http://", "http://h:x", "http://joe:secret", "h"])
def test_what_is_no_proxy_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        checked_proxy("proxy", url)
    assert str(caught.value) == "proxy: the URL is not a proxy that begins with http:// or https://"
