"""What is told of a stand-in: facts, which come from the decoder or from the error of a decider."""

from __future__ import annotations

import pytest

from tenure.model.api.meta import ObjectMeta
from tenure.model.api.pod import Pod
from tenure.model.api.resource import PODS
from tenure.model.snapshot.kinds import decode
from tenure.model.snapshot.unreadable import stand_in, unreadable_object
from tenure.model.values.unreadable import UnreadableObject

NAME = '"metadata": {"name": "web", "namespace": "default"}'


@pytest.mark.parametrize(
    ("more", "told", "sentence"),
    [
        pytest.param(
            '"spec": {"containers": 7}',
            UnreadableObject("Pod", "default/web", "spec.containers", expected="array", got="int"),
            "Pod default/web cannot be read: Expected `array`, got `int` at spec.containers",
            id="another type",
        ),
        pytest.param(
            '"status": {"startTime": "noon"}',
            UnreadableObject(
                "Pod", "default/web", "status.startTime", error="Invalid RFC3339 encoded datetime"
            ),
            "Pod default/web cannot be read: Invalid RFC3339 encoded datetime at status.startTime",
            id="another mistake",
        ),
    ],
)
def test_the_decoder_names_field_and_types(
    more: str, told: UnreadableObject, sentence: str
) -> None:
    found = decode(PODS, f"{{{NAME}, {more}}}".encode())
    assert unreadable_object(found) == told
    assert str(told) == sentence


def test_an_object_on_which_a_decider_failed_has_the_words_of_the_error() -> None:
    pod = Pod(kind="Pod", metadata=ObjectMeta(name="web", namespace="default"))
    odd = unreadable_object(stand_in(pod, "KeyError: 'zone'", decoded=True))
    assert odd == UnreadableObject("Pod", "default/web", error="KeyError: 'zone'", decoded=True)
    assert str(odd) == "Pod default/web cannot be evaluated: KeyError: 'zone'"
