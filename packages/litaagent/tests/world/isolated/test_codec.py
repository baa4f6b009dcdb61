"""Messages: plain data, of bounded size, and nothing that runs."""

import json
import socket
import struct

import numpy as np
import pytest
from negmas.sao import ResponseType, SAOResponse

from litaagent_std.world.isolated.codec import Opaque, decode, encode, receive, send


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        10**30,
        0.1,
        "é",
        (1, 2, 3),
        [1, (2.5, None)],
        {"a": (1, 2), "b": {"c": []}},
        {3: "x"},
        ResponseType.ACCEPT_OFFER,
        np.float64(0.1),
        np.int64(7),
    ],
)
def test_values_keep_their_types(value):
    there = decode(json.loads(json.dumps(encode(value))))
    assert there == value
    assert type(there) is type(value)


def test_responses_and_arrays_arrive():
    reply = decode(encode(SAOResponse(ResponseType.REJECT_OFFER, (1, 2, 3))))
    assert (reply.response, reply.outcome) == (ResponseType.REJECT_OFFER, (1, 2, 3))
    prices = decode(encode(np.array([1.5, 2.5])))
    assert prices.dtype == np.float64
    assert prices.tolist() == [1.5, 2.5]


def test_objects_arrive_as_nothing():
    class Hostile:
        def __reduce__(self):
            return (print, ("run",))

    assert isinstance(decode(encode((Hostile(), 1)))[0], Opaque)


@pytest.mark.parametrize("plain", [{"x": 1}, {"t": 1, "d": 2}, {}, {"r": 99}, {"i": 10**30}, {"t": None}])
def test_other_forms_are_refused(plain):
    with pytest.raises((ValueError, TypeError, OverflowError)):
        decode(plain)


def test_messages_go_through(pair):
    send(pair[0], {"a": [1, 2]}, 5.0)
    assert receive(pair[1], 1000, 5.0) == {"a": [1, 2]}


def test_large_slow_malformed_and_missing_messages_are_refused(pair):
    ours, theirs = pair
    ours.sendall(struct.pack(">I", 1 << 31))
    with pytest.raises(ValueError, match="bytes"):
        receive(theirs, 1000, 5.0)
    ours.sendall(struct.pack(">I", 3) + b"no!")
    with pytest.raises(ValueError, match="no JSON"):
        receive(theirs, 1000, 5.0)
    deep = b"[" * 100_000
    ours.sendall(struct.pack(">I", len(deep)) + deep)
    with pytest.raises(ValueError, match="no JSON"):
        receive(theirs, 1 << 20, 5.0)
    with pytest.raises(TimeoutError):
        receive(theirs, 1000, 0.05)
    ours.close()
    with pytest.raises(EOFError):
        receive(theirs, 1000, 5.0)


def test_a_process_that_waits_for_a_processor_gets_more_time(pair):
    asked = []

    def more():
        asked.append(1)
        return 0.05 if len(asked) < 3 else 0.0

    with pytest.raises(TimeoutError):
        receive(pair[1], 1000, 0.05, more)
    assert len(asked) == 3
