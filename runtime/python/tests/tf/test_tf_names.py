# SPDX-License-Identifier: MIT
"""Names of the module, settings of optimizers, and what of TensorFlow is not public."""
import inspect
from typing import Any

import pytest
import tensorflow

import embeng
import embeng.tf as tf
from embeng.tf import _private, _settings

api = tf.tpu.experimental.embedding


@pytest.mark.sample
def test_names_are_those_of_tensorflow() -> None:
    """Everything but what is listed is TensorFlow's own."""
    assert tf.keras is tensorflow.keras and tf.data is tensorflow.data
    assert tf.constant is tensorflow.constant
    assert tf.distribute.MirroredStrategy is tensorflow.distribute.MirroredStrategy
    assert api.TableConfig is tensorflow.tpu.experimental.embedding.TableConfig
    for name in dir(tensorflow.tpu.experimental.embedding):
        assert hasattr(api, name)
    for ours, theirs in ((tf.distribute, tensorflow.distribute), (tf.tpu, tensorflow.tpu),
                         (tf, tensorflow)):
        assert set(dir(theirs)) <= set(dir(ours))
    assert issubclass(api.TPUEmbedding, tensorflow.tpu.experimental.embedding.TPUEmbedding)
    assert tf.distribute.experimental.TPUStrategy is tf.distribute.TPUStrategy
    space: dict[str, Any] = {}
    exec("from embeng.tf import *", space)
    assert space["keras"] is tensorflow.keras and space["tpu"] is tf.tpu
    with pytest.raises(AttributeError):
        tf.no_such_name  # noqa: B018


def test_options_have_both_names() -> None:
    """The name that seeds use for an option is the one that TensorFlow has now."""
    old = tf.distribute.InputOptions(experimental_prefetch_to_device=False)
    new = tf.distribute.InputOptions(experimental_fetch_to_device=False)
    assert old == new == tensorflow.distribute.InputOptions(experimental_fetch_to_device=False)
    assert isinstance(old, tensorflow.distribute.InputOptions)


@pytest.mark.sample
def test_settings_of_optimizers() -> None:
    """Each setting of TensorFlow's optimizers is one of the engine's."""
    common = {"clip_weight_min": -2.0, "clip_weight_max": 3.0, "weight_decay_factor": 0.5,
              "multiply_weight_decay_factor_by_learning_rate": True, "clipvalue": (None, 4.0)}
    cases = {
        "sgd": api.SGD(0.5, **common),
        "adagrad": api.Adagrad(0.5, initial_accumulator_value=0.7, **common),
        "adagrad_momentum": api.AdagradMomentum(
            0.5, momentum=0.8, use_nesterov=True, exponent=3, beta2=0.9, epsilon=1e-3, **common),
        "ftrl": api.FTRL(0.5, learning_rate_power=-0.7, l1_regularization_strength=0.1,
                         l2_regularization_strength=0.2, beta=0.3, initial_accumulator_value=0.6,
                         multiply_linear_by_learning_rate=True, **common),
        "adam": api.Adam(0.5, beta_1=0.8, beta_2=0.9, epsilon=1e-3, lazy_adam=False,
                         sum_inside_sqrt=False, **common),
    }
    for kind, optimizer in cases.items():
        found = _settings.translate_optimizer(optimizer, 0.5)
        full = found.full()
        assert (found.kind, full["learning_rate"]) == (kind, 0.5)
        assert (full["clip_weight_min"], full["clip_weight_max"], full["clip_max"]) == (-2, 3, 4)
        assert full["weight_decay_factor"] == 0.5 and full["multiply_weight_decay_by_rate"]
        shared = {*common, "learning_rate", "use_gradient_accumulation", "name",
                  "slot_variable_creation_fn", "low_dimensional_packing_status"}
        for name in inspect.signature(type(optimizer)).parameters:
            if name not in shared:
                assert full[name] == pytest.approx(getattr(optimizer, name)), name
    named = _settings.translate_optimizer(api.SGD(lambda: 1.0), "rate_3")
    assert named.learning_rate == "rate_3"
    off = _settings.translate_optimizer(api.Adagrad(0.5, use_gradient_accumulation=False), 0.5)
    assert off.full()["use_gradient_accumulation"] is False


def test_what_cannot_be_served(make_strategy: Any) -> None:
    """Programs for the cores of a TPU, and assignments of them, are refused by name."""
    strategy = make_strategy(1)
    custom = api.CustomOptimizer(tensorflow.function(lambda *rows: rows))
    table = api.TableConfig(4, 2, optimizer=custom, name="t")
    with strategy.scope():
        with pytest.raises(embeng.NotSupportedError, match="CustomOptimizer cannot be served"):
            api.TPUEmbedding({"f": api.FeatureConfig(table)}, api.SGD(0.1))
        with pytest.raises(ValueError, match="unsupported optimizer class"):
            api.TPUEmbedding({"f": api.FeatureConfig(api.TableConfig(4, 2))}, None)
        with pytest.raises(RuntimeError, match="Serving on TPU"):
            api.TPUEmbeddingForServing({"f": api.FeatureConfig(api.TableConfig(4, 2))})
    with pytest.raises(embeng.NotSupportedError, match="SPMD"):
        tf.distribute.TPUStrategy(experimental_spmd_xla_partitioning=True)
    with pytest.raises(RuntimeError, match="created under TPUStrategy"):
        api.TPUEmbeddingV2({"f": api.FeatureConfig(api.TableConfig(4, 2))}, api.SGD(0.1))
    with pytest.raises(embeng.StepOrderError, match="already started with 2"):
        tf.distribute.cluster_resolver.TPUClusterResolver(replicas=3)
    with pytest.raises(embeng.InvalidError, match="from 1"):
        tf.distribute.cluster_resolver.TPUClusterResolver(replicas=0)


def test_replicas_come_from_the_environment(monkeypatch: pytest.MonkeyPatch,
                                            make_strategy: Any) -> None:
    """A program that is not changed has as many replicas as EMBENG_TF_REPLICAS says."""
    make_strategy(1)
    monkeypatch.setenv("EMBENG_TF_REPLICAS", "2")
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    assert strategy.num_replicas_in_sync == 2 and strategy.extended.num_hosts == 1
    monkeypatch.setenv("EMBENG_TF_REPLICAS", "many")
    with pytest.raises(embeng.InvalidError, match="'many'"):
        tf.distribute.cluster_resolver.TPUClusterResolver(tpu="")


def test_private_names_are_there() -> None:
    """A release of TensorFlow that moves what this package asks of it fails here."""
    base = tensorflow.tpu.experimental.embedding.TPUEmbedding
    for name in ("_get_input_shapes", "_maybe_build", "_check_output_shapes",
                 "_get_output_shapes_from_input_shapes", "_get_output_shapes_from_batch_size",
                 "_update_output_shapes", "_get_and_update_output_shapes_from_input",
                 "_create_variables_and_slots"):
        assert callable(getattr(base, name)), name
    parameters = inspect.signature(base._get_input_shapes).parameters
    assert list(parameters) == ["self", "tensors", "per_replica", "in_tpu_context"]
    for name in ("_serialize_to_tensors", "_restore_from_tensors", "assign"):
        assert callable(getattr(_private.ResourceVariable, name)), name
    assert callable(_private.TPUEmbeddingBase._create_variables)
    assert callable(_private.OptimizerBase._create_slots)
    assert _private.GraphOrParentsInXlaContext(tensorflow.Graph()) is False
    parameters = inspect.signature(_private.xla_call_module).parameters
    assert {"args", "version", "module", "Sout", "Tout", "platforms"} <= set(parameters)
    assert _private.PartitionedCsrFormatTensor._fields[:4] == (
        "row_pointers", "sorted_sample_ids", "sorted_token_ids", "sorted_gains")
    embedding = base({"f": api.FeatureConfig(api.TableConfig(4, 2))}, api.SGD(0.1))
    for name in ("_strategy", "_using_tpu", "_feature_config", "_output_shapes", "_table_config",
                 "_built", "_verify_output_shapes_on_enqueue", "_num_cores_per_replica"):
        assert hasattr(embedding, name), name
