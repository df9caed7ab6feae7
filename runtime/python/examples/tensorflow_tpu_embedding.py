# SPDX-License-Identifier: MIT
"""The training program of TPUEmbedding's own documentation, on this machine.

Nothing below the imports knows about embeng: with ``import tensorflow as tf`` it is the program for
a TPU. The documentation leaves out the model, the loss and the data; here they are a small ranking
model for ratings that depend on a user and on the genres of a film.

    EMBENG_TF_REPLICAS=2 python tensorflow_tpu_embedding.py
"""
import os
import tempfile

import numpy

import embeng.tf as tf

USERS, GENRES, BATCH, STEPS = 40, 12, 64, 40


def make_ratings(seed, count):
    """Draw users, bags of one to three genres, and ratings by a rule that can be learned."""
    random = numpy.random.default_rng(seed)
    taste = numpy.random.default_rng(1).normal(size=(USERS, GENRES))
    users = random.integers(0, USERS, count)
    genres = numpy.full((count, 3), -1)
    for row, length in enumerate(random.integers(1, 4, count)):
        genres[row, :length] = random.choice(GENRES, length, replace=False)
    liked = numpy.array([taste[user, bag[bag >= 0]].mean()
                         for user, bag in zip(users, genres, strict=True)])
    return users[:, None], genres, (liked > 0).astype(numpy.float32)[:, None]


def make_dataset(seed):
    """Return batches of (embedding features, (users' part of the model, labels))."""
    users, genres, labels = make_ratings(seed, BATCH * STEPS)

    def split(user, genre, label):
        bags = tf.RaggedTensor.from_tensor(genre, padding=-1)
        return {"user": user, "genre": bags.to_sparse()}, label

    data = tf.data.Dataset.from_tensor_slices((users, genres, labels))
    return data.batch(BATCH, drop_remainder=True).map(split)


resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
tf.config.experimental_connect_to_cluster(resolver)
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)

table_config_one = tf.tpu.experimental.embedding.TableConfig(
    vocabulary_size=USERS, dim=GENRES, name="user")
table_config_two = tf.tpu.experimental.embedding.TableConfig(
    vocabulary_size=GENRES, dim=GENRES, combiner="mean", name="genre")
feature_config = {
    "user": tf.tpu.experimental.embedding.FeatureConfig(table=table_config_one),
    "genre": tf.tpu.experimental.embedding.FeatureConfig(table=table_config_two)}

with strategy.scope():
    embedding = tf.tpu.experimental.embedding.TPUEmbedding(
        feature_config=feature_config,
        batch_size=BATCH,
        optimizer=tf.tpu.experimental.embedding.Adagrad(0.5))
    bias = tf.Variable(tf.zeros([1]))
    optimizer = tf.keras.optimizers.SGD(0.05)


def model(activations):
    """Score a user by the product of both rows."""
    return tf.reduce_sum(activations["user"] * activations["genre"], 1, keepdims=True) + bias


def make_iterator(seed):
    """Distribute the dataset; ids stay on the host."""
    return iter(strategy.experimental_distribute_dataset(
        make_dataset(seed).repeat(),
        options=tf.distribute.InputOptions(experimental_prefetch_to_device=False)))


@tf.function
def training_step(dataset_iterator, num_steps):
    """Train for some steps, and return the mean loss of the last one."""
    def tpu_step(labels):
        with tf.GradientTape() as tape:
            activations = embedding.dequeue()
            tape.watch(activations)
            model_output = model(activations)
            loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(
                labels=labels, logits=model_output)) / BATCH
        embedding_gradients, model_gradients = tape.gradient(loss, [activations, [bias]])
        embedding.apply_gradients(embedding_gradients)
        optimizer.apply_gradients(zip(model_gradients, [bias], strict=True))
        return loss

    loss = tf.constant(0.0)
    for _ in tf.range(num_steps):
        embedding_features, tpu_features = next(dataset_iterator)
        embedding.enqueue(embedding_features, training=True)
        losses = strategy.run(tpu_step, args=(tpu_features,))
        loss = strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
    return loss


@tf.function
def evaluation_step(dataset_iterator, num_steps):
    """Return the part of ratings that are told right."""
    def tpu_step(labels):
        model_output = model(embedding.dequeue())
        return tf.reduce_sum(tf.cast((model_output > 0) == (labels > 0), tf.float32))

    right = tf.constant(0.0)
    for _ in tf.range(num_steps):
        embedding_features, tpu_features = next(dataset_iterator)
        embedding.enqueue(embedding_features, training=False)
        told = strategy.run(tpu_step, args=(tpu_features,))
        right += strategy.reduce(tf.distribute.ReduceOp.SUM, told, axis=None)
    return right / (tf.cast(num_steps, tf.float32) * BATCH)


def main():
    """Train, save, and look up in a table that was restored without a TPUStrategy."""
    training, held_out = make_iterator(7), make_iterator(8)
    first = float(training_step(training, tf.constant(1)))
    for epoch in range(15):
        loss = float(training_step(training, tf.constant(STEPS)))
        if epoch % 5 == 4:
            right = float(evaluation_step(held_out, tf.constant(STEPS)))
            print(f"epoch {epoch + 1}: loss {loss:.3f}, right {right:.3f}")
    assert loss < first and right > 0.75, (first, loss, right)

    with tempfile.TemporaryDirectory() as folder:
        checkpoint = tf.train.Checkpoint(model=bias, embedding=embedding)
        path = checkpoint.save(os.path.join(folder, "checkpoint"))
        trained = embedding.embedding_tables[table_config_one].numpy()

        on_cpu = tf.tpu.experimental.embedding.TPUEmbedding(
            feature_config=feature_config, batch_size=BATCH,
            optimizer=tf.tpu.experimental.embedding.Adagrad(0.5))
        on_cpu.build()
        tf.train.Checkpoint(embedding=on_cpu).restore(path).expect_partial()
    tables = on_cpu.embedding_tables
    row = tf.nn.embedding_lookup(tables[table_config_one], tf.constant([5]))
    assert (row.numpy()[0] == trained[5]).all()
    print("restored", tuple(tables[table_config_one].shape))


if __name__ == "__main__":
    main()
