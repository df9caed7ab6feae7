#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The reference of the lookup on the CPU against numbers worked out by hand."""

import unittest

from embref import Engine
from referror import RefError
from refserving import serve

ROWS = [[0.0, 1.0], [10.0, 11.0], [20.0, 21.0], [30.0, 31.0]]


def engine(combiner="mean", **feature):
    table = {"name": "t", "vocabulary_size": 4, "dim": 2, "initial": ROWS, "combiner": combiner,
             "optimizer": {"kind": "sgd", "learning_rate": 1}}
    return Engine([table], [{"name": "f", "table": "t", **feature}])


def sparse(bags, shape, weights=None):
    """Rank 2 from bags; weights in the order of the ids."""
    out = {"sparse": {"indices": [[s, k] for s, bag in enumerate(bags) for k in range(len(bag))],
                      "values": [i for bag in bags for i in bag], "shape": shape}}
    return out if weights is None else {**out, "weights": weights}


class Serving(unittest.TestCase):
    def gives(self, e, spec, want):
        self.assertEqual(serve(e, {"f": spec})["f"], want)

    def refuses(self, e, spec, errno):
        with self.assertRaises(RefError) as caught:
            serve(e, {"f": spec})
        self.assertEqual(caught.exception.errno, errno)

    def test_dense_keeps_its_shape(self):
        self.gives(engine(), {"dense": [3, 1], "shape": [2, 1]}, [[ROWS[3]], [ROWS[1]]])
        self.gives(engine(output_shape=[1, 2]), {"dense": [3, 1]}, [ROWS[3], ROWS[1]])
        self.refuses(engine(max_sequence_length=1), {"dense": [3]}, "EINVAL")
        self.refuses(engine(), {"dense": [4]}, "ERANGE")

    def test_sparse_prunes(self):
        bags = [[1, -1], [-2], [], [2, 3]]
        self.gives(engine(), sparse(bags, [4, 2]), [ROWS[1], [0, 0], [0, 0], [25.0, 26.0]])
        weights = [2, 1, 1, -1, 3]
        self.gives(engine(), sparse(bags, [4, 2], weights),
                   [ROWS[1], [0, 0], [0, 0], ROWS[3]])
        self.gives(engine("sum"), sparse(bags, [4, 2], weights),
                   [[20.0, 22.0], [0, 0], [0, 0], [70.0, 72.0]])
        self.gives(engine(), sparse([[1, 99]], [1, 2], [1, 0]), [ROWS[1]])

    def test_unchecked(self):
        e = engine(validate_weights_and_indices=False)
        self.gives(e, sparse([[1, 3], [1, 3]], [2, 2], [3, -1, 1, -1]), [[0.0, 1.0], [0, 0]])
        self.refuses(e, sparse([[1, -1]], [1, 2]), "ERANGE")
        self.gives(e, {"sparse": {"indices": [[0, 0, 0], [0, 0, 1]], "values": [1, -1],
                                  "shape": [1, 1, 2]}}, [[ROWS[1]]])

    def test_ragged_keeps_all(self):
        self.gives(engine(), {"ragged": {"rows": [[1, 3], []]}, "weights": [[3, -1], []]},
                   [[0.0, 1.0], [0, 0]])
        self.refuses(engine(), {"ragged": {"rows": [[-1]]}}, "ERANGE")

    def test_sequences(self):
        e = engine(max_sequence_length=2)
        want = [[ROWS[1], ROWS[2]], [[0, 0], [0, 0]], [ROWS[3], [0, 0]]]
        self.gives(e, {"ragged": {"rows": [[1, 2, 3], [], [3]]}}, want)
        self.gives(e, sparse([[1, 2, 3], [], [3]], [3, 3]), want)
        self.refuses(e, {"ragged": {"rows": [[1]]}, "weights": [[1]]}, "EINVAL")

    def test_output_shape(self):
        e = engine(output_shape=[2, 2])
        self.gives(e, {"ragged": {"rows": [[1, 3], [], [2], [0]]}},
                   [[[20.0, 21.0], [0, 0]], [ROWS[2], ROWS[0]]])
        self.gives(e, {"ragged": {"rows": [[1, 2, 3], [0]]}, "weights": [[5, 5, 5], [5]]},
                   [[ROWS[1], ROWS[2]], [ROWS[0], [0, 0]]])
        self.refuses(e, {"ragged": {"rows": [[1], [2], [3]]}}, "EINVAL")

    def test_other_features(self):
        got = serve(engine("sum"), {"g": {"ragged": {"rows": [[1, 2]]}}},
                    [{"name": "g", "table": "t", "max_sequence_length": 1}])
        self.assertEqual(got, {"g": [[ROWS[1]]]})
        self.refuses(engine(), {"sparse": {"indices": [], "values": [], "shape": [1]}}, "EINVAL")


if __name__ == "__main__":
    unittest.main()
