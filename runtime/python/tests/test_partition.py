# SPDX-License-Identifier: MIT
"""Engine.partition(): flavours and rotations of stacks, by examples worked out by hand."""
from typing import Any

import numpy
import pytest

import embeng
from embeng.initializers import constant

PADDING = 2**31 - 1


@pytest.fixture(name="engine")
def _open() -> Any:
    tables = [embeng.Table(name, 8, 1, "sum", None, constant(0.0)) for name in ("t", "u")]
    with embeng.Engine(tables, [embeng.Feature("f", "t"), embeng.Feature("g", "u")]) as engine:
        yield engine


def _partition(engine: Any, features: Any, *more: Any) -> Any:
    """Partition over two cores of one device."""
    options = (2, 2, 0, 0, 0, 0, False, False, 0, *more)
    pointers, items = engine.partition(features, None, *options)
    arrays = (numpy.zeros(pointers, numpy.int32), numpy.zeros(items, numpy.int32),
              numpy.zeros(items, numpy.int32), numpy.zeros(items, numpy.float32),
              *(numpy.zeros(2, numpy.uint32) for _ in range(2)),
              *(numpy.zeros(2, numpy.uint64) for _ in range(3)))
    return engine.partition(features, arrays, *options), arrays


def test_flavours_lay_cores_out_differently(engine: Any) -> None:
    """The two cores have a sample each: ids 2 and 5, and id 3 twice."""
    batch = {"f": embeng.Ragged([2, 5, 3, 3], lengths=[2, 2])}
    facts, arrays = _partition(engine, batch, "tf")
    assert facts["row_stride"] == 8 and facts["buffer_size"] == 24
    assert arrays[0].tolist() == [1, 9, 16, 16, 16, 16, 16, 16, 16, 17, 24, 24, 24, 24, 24, 24]
    assert arrays[1][[0, 8, 16]].tolist() == [1, 2, 1]
    assert arrays[3][[0, 8, 16]].tolist() == [1, 1, 2]
    assert (numpy.delete(arrays[1][:24], [0, 8, 16]) == PADDING).all()
    # Row pointers of a core count from its own part of the buffer.
    of_jax, arrays = _partition(engine, batch, "jax")
    assert arrays[0][[0, 1, 8, 9]].tolist() == [1, 9, 0, 1]
    assert of_jax == _partition(engine, batch)[0]


def test_rotations_turn_the_second_table(engine: Any) -> None:
    """Each table has 16 rows of the stack: id 5 of the second one is row 21, or 20 if rotated."""
    batch = {"f": embeng.Ragged([0, 0], lengths=[1, 1]), "g": embeng.Ragged([5, 5], lengths=[1, 1])}
    for rotation, (even, odd) in ((0, ([0], [10])), (1, ([0, 10], []))):
        _, arrays = _partition(engine, batch, "tf", rotation)
        ends = arrays[0][:2]
        assert arrays[1][:ends[0]].tolist() == even
        assert arrays[1][-(-ends[0] // 8) * 8:ends[1]].tolist() == odd


def test_other_flavours_are_refused(engine: Any) -> None:
    with pytest.raises(ValueError, match='there is no flavour "torch"; it is "jax" or "tf"'):
        _partition(engine, {"f": embeng.Ragged([0, 1], lengths=[1, 1])}, "torch")
