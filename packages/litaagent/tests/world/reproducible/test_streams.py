import copy
import os
import pickle
import random
import subprocess
import sys
import threading
import uuid
from random import choice, randint

import numpy as np
import pytest
from numpy.random import rand

from litaagent_std.world.reproducible import streams
from litaagent_std.world.reproducible.streams import Stream, WorldStreams, switch


@pytest.fixture(autouse=True)
def _leave_no_stream_active():
    previous = streams.active()
    yield
    switch(previous)


def draws():
    return (
        random.random(),
        choice(range(1000)),
        randint(0, 10**6),
        random.gauss(0, 1),
        np.random.rand(),
        np.random.randn(),
        np.random.choice(1000),
        rand(),
    )


def test_every_global_function_draws_from_the_active_stream():
    switch(Stream.from_key(1, "a"))
    first = draws()
    switch(Stream.from_key(1, "a"))
    assert draws() == first
    switch(Stream.from_key(1, "b"))
    assert all(x != y for x, y in zip(draws(), first, strict=True))


def test_streams_do_not_disturb_each_other():
    alone = WorldStreams(5, 2)
    switch(alone[0])
    expected = [draws(), draws()]
    together = WorldStreams(5, 2)
    switch(together[0])
    found = [draws()]
    switch(together[1])
    draws()
    switch(together[0])
    found.append(draws())
    assert found == expected


def test_half_used_pairs_of_gaussians_survive_a_switch():
    one, other = Stream.from_key(3, "one"), Stream.from_key(3, "other")
    switch(one)
    expected = [np.random.randn(), np.random.randn(), random.gauss(0, 1), random.gauss(0, 1)]
    one = Stream.from_key(3, "one")
    found = []
    for draw in (np.random.randn, np.random.randn, lambda: random.gauss(0, 1), lambda: random.gauss(0, 1)):
        switch(one)
        found.append(draw())
        switch(other)
        np.random.randn()
        random.gauss(0, 1)
    assert found == expected


def test_a_seat_keeps_its_stream_whatever_the_number_of_seats():
    few, many = WorldStreams(9, 2), WorldStreams(9, 7)
    assert few[1].python.random() == many[1].python.random()
    assert few[1].numpy.rand() == many[1].numpy.rand()


def test_switch_returns_what_was_active_so_nested_calls_restore_it():
    outer, inner = Stream.from_key(0, "outer"), Stream.from_key(0, "inner")
    before = switch(outer)
    assert switch(inner) is outer
    assert switch(outer) is inner
    assert switch(before) is outer
    assert streams.active() is before


def test_seeding_inside_a_stream_stays_inside():
    before = random.getstate(), np.random.get_state()
    switch(Stream.from_key(0, "a"))
    random.seed(3)
    np.random.seed(3)
    assert random.random() == random.Random(3).random()
    assert np.random.rand() == np.random.RandomState(3).rand()
    switch(streams._outside)
    assert random.getstate() == before[0]
    assert all(np.array_equal(x, y) for x, y in zip(np.random.get_state(), before[1], strict=True))


def unseeded():
    return (
        random.Random().random(),
        np.random.default_rng().random(),
        np.random.RandomState().rand(),
        np.random.Generator(np.random.PCG64()).random(),
        uuid.uuid4(),
    )


def test_generators_made_without_a_seed_take_it_from_the_stream():
    switch(Stream.from_key(4, "a"))
    first, second = unseeded(), unseeded()
    switch(Stream.from_key(4, "a"))
    assert (unseeded(), unseeded()) == (first, second)
    assert all(x != y for x, y in zip(first, second, strict=True))


def test_outside_worlds_generators_made_without_a_seed_are_random():
    switch(streams._outside)
    assert all(x != y for x, y in zip(unseeded(), unseeded(), strict=True))


def test_seeded_generators_are_as_python_and_numpy_make_them():
    code = (
        "import random, numpy as np; "
        "print(random.Random(7).random(), np.random.default_rng(7).random(), np.random.RandomState(7).rand())"
    )
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    switch(Stream.from_key(4, "a"))
    ours = (random.Random(7).random(), np.random.default_rng(7).random(), np.random.RandomState(7).rand())
    assert [float(x) for x in plain] == [float(x) for x in ours]


def test_generators_can_still_be_copied_and_pickled():
    one = random.Random(3)
    assert pickle.loads(pickle.dumps(one)).random() == copy.deepcopy(one).random() == random.Random(3).random()


def test_modules_imported_before_the_installation_dispatch_too():
    code = (
        "from random import choice; from numpy.random import randint; from uuid import uuid4\n"
        "from litaagent_std.world import streams\n"
        "def draw():\n"
        "    streams.switch(streams.Stream.from_key(1, 'a'))\n"
        "    return choice(range(10**9)), int(randint(10**9)), uuid4()\n"
        "assert streams.is_installed()\n"
        "print(draw() == draw())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_libraries_that_ask_for_numpys_global_generator_get_the_dispatcher():
    code = (
        "from litaagent_std.world import streams\n"
        "from scipy import stats\n"
        "def draw():\n"
        "    streams.switch(streams.Stream.from_key(1, 'a'))\n"
        "    return float(stats.norm.rvs())\n"
        "print(draw() == draw())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_the_key_alone_determines_a_stream_in_any_process():
    code = (
        "from litaagent_std.world.reproducible.streams import Stream\n"
        "s = Stream.from_key(12, 'seat/3')\n"
        "print(s.python.random(), s.numpy.rand(), s.seeds.random())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": salt},
        ).stdout
        for salt in ("1", "2")
    }
    here = Stream.from_key(12, "seat/3")
    assert outputs == {f"{here.python.random()} {here.numpy.rand()} {here.seeds.random()}\n"}


def test_installing_twice_changes_nothing():
    functions = random.choice, np.random.rand, uuid.uuid4, random.Random.seed
    streams.install()
    assert (random.choice, np.random.rand, uuid.uuid4, random.Random.seed) == functions


def test_the_bit_generator_can_be_exchanged_as_ever_outside_worlds() -> None:
    original = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(3))
    try:
        assert np.random.get_state(legacy=False)["bit_generator"] == "PCG64"
        assert np.random.normal() == np.random.RandomState(np.random.PCG64(3)).normal()
    finally:
        np.random.set_bit_generator(original)
    assert np.random.get_bit_generator() is original


def test_a_thread_that_was_left_behind_does_not_change_the_draws_of_a_world():
    stop = threading.Event()

    def draw_for_ever():
        while not stop.is_set():
            draws()
            np.random.default_rng()
            uuid.uuid4()

    switch(Stream.from_key(1, "a"))
    expected = [draws() for _ in range(300)]
    stray = threading.Thread(target=draw_for_ever)
    stray.start()
    try:
        switch(Stream.from_key(1, "a"))
        assert [draws() for _ in range(300)] == expected
    finally:
        stop.set()
        stray.join()
