import collections
import io
import random

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from apexrl.envs.snapshot import capture, restore
from apexrl.envs.vec_env import StateNotSupportedError


class Thing:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def copied(source, target):
    buffer = io.BytesIO()
    torch.save(capture(source), buffer)
    buffer.seek(0)
    restore(target, torch.load(buffer, weights_only=True))
    return target


@given(
    array=hnp.arrays(
        st.sampled_from(["f4", "f8", "i2", "u4", "u8", "?", "c8", ">f4"]), hnp.array_shapes(min_dims=0, max_side=4)
    ),
    number=st.one_of(st.integers(), st.floats(allow_nan=False), st.none(), st.booleans(), st.text()),
)
@settings(max_examples=50)
def test_arrays_and_values_come_back_exactly(array, number):
    back = copied(Thing(a=array, n=number, s=array.dtype.type(1)), Thing(a=None, n=None, s=None))
    np.testing.assert_array_equal(back.a, array, strict=True)
    assert back.a.dtype == array.dtype
    assert back.n == number
    assert type(back.n) is type(number)
    assert type(back.s) is array.dtype.type


@pytest.mark.parametrize("bits", [np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_random_streams_continue(bits):
    source = Thing(g=np.random.Generator(bits(3)), r=random.Random(1), l=np.random.RandomState(2))
    source.g.random(5)
    source.r.gauss(0, 1)
    back = copied(source, Thing(g=None, r=None, l=None))
    assert np.array_equal(back.g.random(9), source.g.random(9))
    assert back.r.gauss(0, 1) == source.r.gauss(0, 1)
    assert back.l.normal() == source.l.normal()


def test_containers_keep_their_kind():
    content = {"t": (1, [2.0, "x"]), 5: {6, 7}, "q": collections.deque([1, 2, 3], maxlen=3)}
    back = copied(Thing(c=content), Thing(c={}))
    assert back.c == content
    assert type(back.c["t"]) is tuple
    back.c["q"].append(4)
    assert list(back.c["q"]) == [2, 3, 4]


def test_a_default_dict_keeps_its_factory():
    source = Thing(d=collections.defaultdict(list, a=[1]))
    back = copied(source, Thing(d=collections.defaultdict(list, b=[2])))
    assert dict(back.d) == {"a": [1]}
    assert back.d["new"] == []


def test_shared_objects_and_arrays_stay_shared():
    part, array = Thing(x=1), np.zeros(2)
    back = copied(Thing(a=part, b=part, m=array, n=array), Thing(a=Thing(x=0), b=None, m=None, n=None))
    assert back.a is back.b
    back.m[0] = 5
    assert back.n[0] == 5


def test_cycles_are_followed():
    source = Thing(child=Thing(x=1))
    source.child.parent = source
    target = Thing(child=Thing(x=0))
    back = copied(source, target)
    assert back.child.parent is back
    assert back.child.x == 1


def test_a_pointer_to_one_of_several_objects_moves():
    def build(chosen):
        marks = [Thing(x=float(i)) for i in range(3)]
        return Thing(goal=marks[chosen], marks=marks)

    source = build(0)
    for mark in source.marks:
        mark.x += 10
    back = copied(source, build(2))
    assert [mark.x for mark in back.marks] == [10.0, 11.0, 12.0]
    assert back.goal is back.marks[0]
    assert len({id(mark) for mark in back.marks}) == 3


def test_lists_of_objects_may_grow_and_shrink():
    source = Thing(shots=[Thing(x=i) for i in range(3)])
    assert [s.x for s in copied(source, Thing(shots=[Thing(x=9)])).shots] == [0, 1, 2]
    assert copied(Thing(shots=[]), Thing(shots=[Thing(x=9)])).shots == []


def test_attributes_that_came_or_went_are_set_right():
    back = copied(Thing(a=1), Thing(b=2))
    assert back.__dict__ == {"a": 1}


def test_slots_and_bound_methods_are_kept():
    class Slotted:
        __slots__ = ("x",)

    class Owner(Thing):
        def hello(self):
            return self.name

    slotted = Slotted()
    slotted.x = 4
    source = Owner(name="source", s=slotted)
    source.call = source.hello
    target = Owner(name="target", s=Slotted())
    target.call = target.hello
    back = copied(source, target)
    assert back.s.x == 4
    assert back.call() == "source"
    assert back.call.__self__ is back


def test_the_sampling_stream_of_spaces_is_kept():
    def build(seed):
        space = spaces.Dict({"a": spaces.Box(0, 1, (2,)), "b": spaces.Discrete(9)})
        space.seed(seed)
        return Thing(space=space)

    source = build(0)
    source.space.sample()
    back = copied(source, build(1))
    assert all(str(back.space.sample()) == str(source.space.sample()) for _ in range(5))


def test_own_hooks_come_first():
    class Physics:
        __slots__ = ("state",)

        def state_dict(self):
            return {"x": torch.tensor(self.state)}

        def load_state_dict(self, state):
            self.state = state["x"].item()

    a, b = Physics(), Physics()
    a.state, b.state = 5, 6
    assert copied(Thing(p=a), Thing(p=b)).p.state == 5


class ListWithMore(list):
    pass


@pytest.mark.parametrize("thing", [iter([1]), object(), (i for i in range(3)), b"raw", ListWithMore([1])])
def test_what_cannot_be_read_is_named(thing):
    with pytest.raises(StateNotSupportedError, match=r"Thing\.inner\.odd"):
        capture(Thing(inner=Thing(odd=thing)))


def test_views_are_refused():
    base = np.zeros(6)
    with pytest.raises(StateNotSupportedError, match="share memory"):
        capture(Thing(whole=base, part=base[2:4]))


def test_arrays_of_objects_are_refused():
    with pytest.raises(StateNotSupportedError, match="Python objects"):
        capture(Thing(a=np.array([None, "x"], object)))


def test_a_self_containing_list_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(StateNotSupportedError, match="holds itself"):
        copied(Thing(a=loop), Thing(a=[]))


def test_a_class_that_the_target_does_not_know_is_refused():
    class Other(Thing):
        pass

    with pytest.raises(StateNotSupportedError, match="none to take after"):
        copied(Thing(a=Other()), Thing(a=None))


def test_a_missing_function_is_refused():
    with pytest.raises(StateNotSupportedError, match="missing now"):
        copied(Thing(f=len), Thing(f=None))
