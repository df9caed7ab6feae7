# SPDX-License-Identifier: MIT
"""HighwayHash64 (arXiv 1612.06257) of up to 31 bytes, by bytes rather than by masks."""

INITIAL = ((0xdbe6d5d5fe4cce2f, 0xa4093822299f31d0, 0x13198a2e03707344, 0x243f6a8885a308d3),
           (0x3bd39e10cb0ef593, 0xc0acf169b5f18a8c, 0xbe5466cf34e90c6c, 0x452821e638d01377))
# The byte of a pair of lanes that goes to each place of a pair.
ZIPPER = (3, 12, 2, 5, 14, 1, 15, 0, 11, 4, 10, 13, 9, 6, 8, 7)
MASK = (1 << 64) - 1
COLUMN_KEY = (0x4451e30f87db9609, 0xca7358a1fd2737f8, 0x4b2c991fcee4fdea, 0x0b2658e18326f6ba)


def _swap(x):
    return (x >> 32 | x << 32) & MASK


def _zipped(lanes):
    out = []
    for pair in (lanes[:2], lanes[2:]):
        raw = b"".join(x.to_bytes(8, "little") for x in pair)
        mixed = bytes(raw[i] for i in ZIPPER)
        out += [int.from_bytes(mixed[:8], "little"), int.from_bytes(mixed[8:], "little")]
    return out


class _State:
    def __init__(self, key):
        self.mul = [list(INITIAL[0]), list(INITIAL[1])]
        self.v0 = [m ^ k for m, k in zip(INITIAL[0], key)]
        self.v1 = [m ^ _swap(k) for m, k in zip(INITIAL[1], key)]

    def update(self, packet):
        low = 0xffffffff
        for i, lane in enumerate(packet):
            self.v1[i] = (self.v1[i] + self.mul[0][i] + lane) & MASK
            self.mul[0][i] ^= (self.v1[i] & low) * (self.v0[i] >> 32)
            self.v0[i] = (self.v0[i] + self.mul[1][i]) & MASK
            self.mul[1][i] ^= (self.v0[i] & low) * (self.v1[i] >> 32)
        self.v0 = [(a + b) & MASK for a, b in zip(self.v0, _zipped(self.v1))]
        self.v1 = [(a + b) & MASK for a, b in zip(self.v1, _zipped(self.v0))]


def _rotated(x, by):
    halves = [x & 0xffffffff, x >> 32]
    halves = [(h << by | h >> (32 - by)) & 0xffffffff for h in halves]
    return halves[0] | halves[1] << 32


def highway64(data, key):
    """HighwayHash-64 of data that has 4, 8 or 12 bytes."""
    assert len(data) in (4, 8, 12)
    state, size = _State(key), len(data)
    state.v0 = [(v + (size << 32) + size) & MASK for v in state.v0]
    state.v1 = [_rotated(v, size) for v in state.v1]
    packet = data + bytes(32 - size)
    state.update([int.from_bytes(packet[i:i + 8], "little") for i in range(0, 32, 8)])
    for _ in range(4):
        v = state.v0
        state.update([_swap(v[2]), _swap(v[3]), _swap(v[0]), _swap(v[1])])
    return (state.v0[0] + state.v1[0] + state.mul[0][0] + state.mul[1][0]) & MASK


def column_hash(column):
    return highway64(column.to_bytes(4, "little"), COLUMN_KEY)
