"""AWS secret keys, which only their neighbours give away."""

import pytest

from ricordo.guard import Redactor, has_secret

pytestmark = pytest.mark.req("FC-SECRET")

REDACTOR = Redactor(bytes(range(32)))
KEY_ID = "AKIA" + "Q7ZK3MFJ2XWPRT5L"
SECRET = "wJalrXUtnFEMIqK7MDENG" + "zbPxRfiCYh3kd9aLq0Z"


@pytest.mark.parametrize(
    "text",
    [
        f"AWS: {KEY_ID} secret {SECRET}",
        f"{KEY_ID},{SECRET}",
        f"{SECRET} belongs to {KEY_ID}.",
        f"{KEY_ID}\n{SECRET}\n",
    ],
)
def test_the_secret_beside_a_key_id_goes_with_it(text: str) -> None:
    redacted = REDACTOR.redact(text)
    assert SECRET not in redacted.text
    assert {mark.type for mark in redacted.marks} == {"aws-key-id", "aws-secret-key"}


def test_the_word_secret_is_enough_on_the_same_line() -> None:
    assert REDACTOR.redact(f"The secret for the bucket: {SECRET}.").marks[0].type == "aws-secret-key"
    assert not has_secret(f"The secret\nid {SECRET}")


@pytest.mark.parametrize(
    "text",
    [
        f"the object {SECRET} is in the bucket",
        f"{KEY_ID[:4]} ids and {SECRET}",
        "the secret commit 4f3a2b1c5d6e7f8091a2b3c4d5e6f708192a3b4c",
        "secret santa lives in src/main/java/org/example/service/Handler",
        f"secret {'Ab1' * 13}x",
        "secrets are read by ConfigurationPropertiesSecretsProviderImpl40",
    ],
)
def test_the_shape_alone_and_what_is_not_random_stay(text: str) -> None:
    assert not has_secret(text)
