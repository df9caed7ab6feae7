# SPDX-License-Identifier: MIT
"""Train a model over feature columns of TPU embeddings, as an EmbeddingConfigSpec has them.

The columns, their parameters and the specification are those of the documentation's program.
TensorFlow has no TPUEstimator any more: a step of tf.function takes its place. Ratings follow from
ids, so that the loss falls.
"""
from typing import Any

import tensorflow as tf

from embeng.tf.config_spec import AdagradParameters, EmbeddingConfigSpec

BATCH, STEPS = 64, 200


def make_columns() -> list[Any]:
    """Make two columns that share a table, and one of its own."""
    tpu = tf.compat.v1.tpu.experimental
    column_a, column_b, column_c = (
        tf.feature_column.categorical_column_with_identity(name, 100) for name in "abc")
    shared = tpu.shared_embedding_columns([column_a, column_b], 10)
    return [tpu.embedding_column(column_c, 10, learning_rate_fn=decay), *shared]


def decay(step: Any) -> Any:
    """Compute a learning rate that falls with the step."""
    return 0.5 / (1.0 + tf.cast(step, tf.float32) / 100.0)


def make_batch(random: Any) -> tuple[dict[str, Any], Any]:
    """Make inputs of the three columns, and labels that follow from them."""
    features = {name: random.uniform([BATCH, 2], 0, 100, tf.int64) for name in "abc"}
    labels = (features["a"][:, :1] % 4 - features["c"][:, :1] % 4)
    return features, tf.cast(labels, tf.float32)


def main() -> None:
    """Train, and print the loss of the first and of the last steps."""
    tf.keras.utils.set_random_seed(7)
    spec = EmbeddingConfigSpec(feature_columns=make_columns(), clipping_limit=1.0,
                               optimization_parameters=AdagradParameters(0.5))
    embedding = spec.open()
    model = tf.keras.Sequential([tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
    model.build([None, 30])
    optimizer = tf.keras.optimizers.Adagrad(0.1)
    random = tf.random.Generator.from_seed(11)

    @tf.function  # type: ignore[untyped-decorator]
    def train(num_steps: Any) -> Any:
        total = 0.0
        for _ in tf.range(num_steps):
            features, labels = make_batch(random)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(embedding.input_layer(features)) - labels) ** 2)
            variables = model.trainable_variables
            gradients = tape.gradient(loss, [embedding.anchor, *variables])
            optimizer.apply_gradients(zip(gradients[1:], variables, strict=True))
            total += loss
        return total / tf.cast(num_steps, tf.float32)

    print("loss at first:", float(train(tf.constant(10))))
    train(tf.constant(STEPS))
    print("loss at last:", float(train(tf.constant(10))))
    print("tables:", [table.name for table in embedding.engine.tables])
    print("steps:", int(embedding.global_step), embedding.engine.step)


if __name__ == "__main__":
    main()
