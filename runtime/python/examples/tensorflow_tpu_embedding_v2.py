# SPDX-License-Identifier: MIT
"""TPUEmbeddingV2 as its documentation has it: preprocess, look up, apply gradients.

Nothing below the imports knows about embeng. The task is to tell numbers of two digits from each
other by the sum of their digits, which the rows of the digits learn.

    EMBENG_TF_REPLICAS=2 python tensorflow_tpu_embedding_v2.py
"""
import numpy

import embeng.tf as tf

BATCH = 32  # each replica has as many samples

resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)

with strategy.scope():
    steps = tf.Variable(0, trainable=False, dtype=tf.int64,
                        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


def learning_rate():
    """Return the rate of the step: evaluated in the graph, each time."""
    return 0.5 / (1.0 + tf.cast(steps, tf.float32) / 100)


digit = tf.tpu.experimental.embedding.TableConfig(
    vocabulary_size=10, dim=1, combiner="sum", name="digit",
    optimizer=tf.tpu.experimental.embedding.SGD(learning_rate))
feature_config = {"digits": tf.tpu.experimental.embedding.FeatureConfig(
    table=digit, name="digits", output_shape=[BATCH])}

with strategy.scope():
    embedding = tf.tpu.experimental.embedding.TPUEmbeddingV2(
        feature_config=feature_config,
        optimizer=tf.tpu.experimental.embedding.Adagrad(0.1))


def make_batches(context):
    """Return batches of a replica: bags of two digits, and their sums."""
    random = numpy.random.default_rng(7 + context.input_pipeline_id)
    digits = random.integers(0, 10, (BATCH * 50, 2))

    def split(pair):
        ids = tf.RaggedTensor.from_tensor(pair)
        return {"digits": ids}, tf.cast(tf.reduce_sum(pair, 1, keepdims=True), tf.float32)

    return tf.data.Dataset.from_tensor_slices(digits).batch(
        BATCH, drop_remainder=True).map(split).repeat()


@tf.function
def training_step(iterator, num_steps):
    """Train for some steps, and return the loss of the last one."""
    def step(inputs):
        features, labels = inputs
        with tf.GradientTape() as tape:
            activations, preserved_outputs = embedding(features)
            tape.watch(activations)
            loss = tf.reduce_mean(tf.square(activations["digits"] - labels))
        gradients = tape.gradient(loss, activations)
        embedding.apply_gradients(gradients, preserved_outputs)
        return loss / strategy.num_replicas_in_sync

    loss = tf.constant(0.0)
    for _ in tf.range(num_steps):
        losses = strategy.run(step, args=(next(iterator),))
        steps.assign_add(1)
        loss = strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
    return loss


def main():
    """Train, and print what each digit is worth."""
    iterator = iter(strategy.distribute_datasets_from_function(
        make_batches, tf.distribute.InputOptions(experimental_fetch_to_device=False)))
    loss = float(training_step(iterator, tf.constant(300)))
    worth = embedding.embedding_tables[digit].numpy()[:, 0]
    print("loss", f"{loss:.5f}", "digits", numpy.round(worth, 2))
    assert loss < 1e-2 and numpy.abs(worth - numpy.arange(10)).max() < 0.1


if __name__ == "__main__":
    main()
