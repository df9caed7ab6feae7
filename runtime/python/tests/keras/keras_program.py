# SPDX-License-Identifier: MIT
"""Trains a layer on the backend of KERAS_BACKEND, and says what its tables are then.

Arguments: a file to begin from, or "-"; a file to save to; and the optimizer, of which "clipped" is
SGD with momentum and clipnorm. The loss is such that
each backend computes gradients of the same bits: squares over 64 numbers, and no sum of products.
"""
import hashlib
import json
import sys
from typing import Any

import keras
import numpy
from keras_peers import BATCH, ROWS, make_feature, make_table

from embeng.keras import DistributedEmbedding


def _make(optimizer: str) -> Any:
    given: Any = optimizer
    if optimizer == "clipped":
        given = keras.optimizers.SGD(0.1, momentum=0.9, clipnorm=0.05)
    layer = DistributedEmbedding(make_feature(make_table(optimizer=given)), name="embedding")
    inputs = keras.Input((3,), dtype="int32")
    model = keras.Model(inputs, layer(inputs))
    model.compile(optimizer="sgd", loss="mse")
    return model


def main() -> None:
    source, target, optimizer = sys.argv[1:]
    model = _make(optimizer) if source == "-" else keras.models.load_model(source)
    rng = numpy.random.default_rng(20261128)
    ids = rng.integers(0, ROWS, (4 * BATCH, 3)).astype("int32")
    labels = rng.standard_normal((4 * BATCH, 4)).astype("float32")
    model.fit(ids, labels, batch_size=BATCH, shuffle=False, verbose=0)
    model.save(target)
    engine = model.get_layer("embedding").engine
    rows = {slot or "rows": hashlib.sha256(engine["t"].read(slot=slot).tobytes()).hexdigest()
            for slot in (None, *engine["t"].slots)}
    print("FOUND " + json.dumps({"step": engine.step, **rows}))


main()
