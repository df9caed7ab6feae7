# SPDX-License-Identifier: MIT
"""Train, evaluate, checkpoint and export a Keras model with the layer TPUEmbedding.

The program is the one of the layer's documentation. Two imports differ: ``embeng.tf`` stands for
``tensorflow``, and ``embeng.tf.tfrs`` for ``tensorflow_recommenders``. It runs with Keras 3, and
with ``TF_USE_LEGACY_KERAS=1`` with the older Keras; with ``EMBENG_TF_REPLICAS=2`` it has two
replicas. Ratings follow from ids, so that the loss falls.
"""
import pathlib
import tempfile
from typing import Any

import embeng.tf as tf
from embeng.tf import tfrs

BATCH, STEPS = 32, 40
EmbeddingConfig = tf.tpu.experimental.embedding


def make_features() -> dict[str, Any]:
    """Configure two tables and three features."""
    start = tf.keras.initializers.RandomUniform(-0.05, 0.05, seed=7)
    movies = EmbeddingConfig.TableConfig(100, 8, start, combiner="mean", name="movies")
    users = EmbeddingConfig.TableConfig(50, 8, start, combiner="sum", name="users")
    return {
        "watched": EmbeddingConfig.FeatureConfig(movies, name="watched"),
        "favorited": EmbeddingConfig.FeatureConfig(movies, name="favorited"),
        "user": EmbeddingConfig.FeatureConfig(users, name="user"),
    }


class Ranker(tf.keras.Model):  # type: ignore[misc]
    """Rate a user's next movie by embeddings."""

    def __init__(self, features: dict[str, Any], optimizer: Any):
        super().__init__()
        # Batches of sparse tensors have no size that is known before.
        self.embedding_layer = tfrs.TPUEmbedding(feature_config=features, optimizer=optimizer,
                                                 batch_size=BATCH)
        self.hidden = tf.keras.layers.Dense(16, activation="relu")
        self.logits = tf.keras.layers.Dense(1)

    def call(self, inputs: Any) -> Any:
        """Return a rating for each sample."""
        embedding = self.embedding_layer(inputs)
        return self.logits(self.hidden(tf.concat(tf.nest.flatten(embedding), axis=1)))


def make_dataset() -> Any:
    """Make batches of labels and features, the same ones at each run."""
    random = tf.random.Generator.from_seed(11)

    def make_batch(number: Any) -> Any:
        watched = random.uniform([BATCH, 3], 0, 100, tf.int32)
        favorited = random.uniform([BATCH, 2], 0, 100, tf.int32)
        user = random.uniform([BATCH], 0, 50, tf.int32)
        label = tf.cast(user[:, tf.newaxis] % 5 + watched[:, :1] % 3, tf.float32)
        return label, {"watched": tf.sparse.from_dense(watched),
                       "favorited": tf.sparse.from_dense(favorited), "user": user}

    return tf.data.Dataset.range(4).map(make_batch).cache().repeat()


def train(strategy: Any, model: Any, optimizer: Any, iterator: Any) -> list[float]:
    """Run steps in a loop of TensorFlow; return the losses of its ends."""
    @tf.function  # type: ignore[untyped-decorator]
    def training_step(dataset_iterator: Any, num_steps: Any) -> Any:
        def tpu_step(inputs: Any) -> Any:
            labels, features = inputs
            with tf.GradientTape() as tape:
                model_output = model(features)
                loss = tf.reduce_mean((model_output - labels) ** 2) / strategy.num_replicas_in_sync
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        total = 0.0
        for _ in tf.range(num_steps):
            losses = strategy.run(tpu_step, args=(next(dataset_iterator),))
            total = strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)
        return total

    return [float(training_step(iterator, tf.constant(STEPS))) for _ in range(3)]


def evaluate(strategy: Any, model: Any, iterator: Any) -> float:
    """Compute the loss of a batch, which changes no table."""
    @tf.function  # type: ignore[untyped-decorator]
    def evaluation_step(dataset_iterator: Any) -> Any:
        def tpu_step(inputs: Any) -> Any:
            labels, features = inputs
            return tf.reduce_mean((model(features) - labels) ** 2) / strategy.num_replicas_in_sync

        losses = strategy.run(tpu_step, args=(next(dataset_iterator),))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    return float(evaluation_step(iterator))


def export(model: Any, folder: pathlib.Path) -> Any:
    """Save the model for serving, load it again, and rate a user's two movies by it."""
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.int32),
                                  tf.TensorSpec([None], tf.int32)])
    def serve(watched: Any, user: Any) -> Any:
        bags = tf.sparse.from_dense(watched)
        return {"rating": model({"watched": bags, "favorited": bags, "user": user})}

    module = tf.Module()
    module.model = model
    module.serve = serve
    tf.saved_model.save(module, str(folder), signatures={"serving": serve})
    loaded = tf.saved_model.load(str(folder))
    found = loaded.signatures["serving"](watched=tf.constant([[3, 4]]), user=tf.constant([7]))
    return found["rating"].numpy()


def main() -> None:
    """Run all of it."""
    tf.keras.utils.set_random_seed(7)
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    with strategy.scope():
        model = Ranker(make_features(), EmbeddingConfig.Adagrad(learning_rate=0.3))
        optimizer = tf.keras.optimizers.Adagrad(learning_rate=0.05)
    options = tf.distribute.InputOptions(experimental_prefetch_to_device=False)
    dataset = strategy.experimental_distribute_dataset(make_dataset(), options=options)
    iterator = iter(dataset)
    print("loss before:", evaluate(strategy, model, iterator))
    print("losses:", train(strategy, model, optimizer, iterator))
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = tf.train.Checkpoint(model=model)
        path = checkpoint.save(str(pathlib.Path(folder, "checkpoint")))
        after = evaluate(strategy, model, iterator)
        print("loss after:", after)
        print("rating:", export(model, pathlib.Path(folder, "export")))
        train(strategy, model, optimizer, iterator)
        checkpoint.restore(path)
        for _ in range(3):  # the data repeats after four batches
            next(iterator)
        print("loss of the checkpoint:", evaluate(strategy, model, iterator))


if __name__ == "__main__":
    main()
