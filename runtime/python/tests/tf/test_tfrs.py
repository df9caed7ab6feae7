# SPDX-License-Identifier: MIT
"""The layer of TensorFlow Recommenders with each Keras, and optimizers of Keras for tables."""
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow")
tf_keras = pytest.importorskip("tf_keras")
keras = pytest.importorskip("keras")

from embeng.tf import EngineOptimizer  # noqa: E402
from embeng.tf._keras_optimizers import (  # noqa: E402
    normalize_optimizer,
    translate_keras_optimizer,
)

HERE = Path(__file__).resolve().parent
EXAMPLE = HERE.parents[1] / "examples" / "tensorflow_layer.py"
CHECKS = ["check_training", "check_kinds", "check_rates", "check_evaluation", "check_serving",
          "check_refusals", "check_functional", "check_plain"]
api = tf.tpu.experimental.embedding
FAMILIES = {"keras": keras.optimizers, "tf_keras": tf_keras.optimizers,
            "legacy": tf_keras.optimizers.legacy}


def run_program(path: Path, *arguments: str, legacy: bool, replicas: int = 2) -> str:
    """Run a program with one of the two Keras, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path),
                   "CUDA_VISIBLE_DEVICES": "", "TF_USE_LEGACY_KERAS": str(int(legacy)),
                   "KERAS_BACKEND": "tensorflow", "EMBENG_TF_REPLICAS": str(replicas)}
    done = subprocess.run([sys.executable, str(path), *arguments], env=environment, text=True,
                          capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("legacy", [False, True])
def test_layer(legacy: bool) -> None:
    """Each check of tfrs_program.py passes, with two replicas."""
    checks = [*CHECKS, "check_checkpoint"] if legacy else CHECKS
    found = run_program(HERE / "tfrs_program.py", *checks, legacy=legacy)
    assert [line.split()[0] for line in found.splitlines() if line.endswith("passed")] == checks


@pytest.mark.parametrize(("legacy", "replicas"), [(False, 2), (True, 1)])
def test_example(legacy: bool, replicas: int) -> None:
    """The documentation's program learns, and its checkpoint is as good as it was."""
    found = dict(line.split(":", 1) for line in run_program(
        EXAMPLE, legacy=legacy, replicas=replicas).splitlines() if ":" in line)
    losses = [float(x) for x in found["losses"].strip(" []").split(",")]
    assert losses[-1] < float(found["loss before"]) / 50
    assert float(found["loss after"]) < float(found["loss before"]) / 50
    assert found["loss of the checkpoint"] == found["loss after"]
    assert len(found["rating"].strip(" []")) > 2


def test_other_backend(monkeypatch: pytest.MonkeyPatch, run_python: Any) -> None:
    """The layer says which Keras it needs."""
    monkeypatch.setenv("KERAS_BACKEND", "numpy")
    done = run_python("from embeng.tf import tfrs")
    assert "embeng.tf.tfrs is for TensorFlow, and Keras runs on numpy" in done.stderr


@pytest.mark.sample
@pytest.mark.parametrize("family", FAMILIES)
def test_translate(family: str) -> None:
    """Settings of an optimizer of Keras are those of the table's."""
    made = FAMILIES[family]
    assert isinstance(translate_keras_optimizer(made.SGD(0.5)), api.SGD)
    adagrad = translate_keras_optimizer(made.Adagrad(0.5, initial_accumulator_value=0.25))
    assert isinstance(adagrad, api.Adagrad)
    assert adagrad.initial_accumulator_value == 0.25
    adam = translate_keras_optimizer(made.Adam(0.5, beta_1=0.8, beta_2=0.7, epsilon=0.5))
    assert isinstance(adam, api.Adam)
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.8, 0.7, 0.5)
    ftrl = translate_keras_optimizer(made.Ftrl(0.5, l1_regularization_strength=0.25, beta=0.125))
    assert isinstance(ftrl, api.FTRL)
    assert (ftrl.l1_regularization_strength, ftrl.beta) == (0.25, 0.125)
    rate = adam.learning_rate
    assert float(rate() if callable(rate) else rate) == 0.5


@pytest.mark.parametrize("family", FAMILIES)
def test_schedules(family: str) -> None:
    """A schedule follows the optimizer's iterations; other rates may be assigned or computed."""
    made = FAMILIES[family]
    schedules = keras if family == "keras" else tf_keras
    schedule = schedules.optimizers.schedules.PiecewiseConstantDecay([1, 3], [1.0, 0.5, 0.25])
    optimizer = made.SGD(schedule)
    rate = translate_keras_optimizer(optimizer).learning_rate
    for step, expected in ((0, 1.0), (2, 0.5), (4, 0.25)):
        optimizer.iterations.assign(step)
        assert float(rate()) == expected
    if family != "legacy":
        optimizer = made.SGD(0.5)
        rate = translate_keras_optimizer(optimizer).learning_rate
        optimizer.learning_rate.assign(0.25)
        assert float(rate()) == 0.25
    if family != "tf_keras":
        counter = tf.Variable(2.0)
        rate = translate_keras_optimizer(made.SGD(lambda: 1.0 / counter)).learning_rate
        counter.assign(4.0)
        assert float(rate()) == 0.25


@pytest.mark.parametrize(("make", "words"), [
    (lambda made: made.SGD(momentum=0.5), "parameter momentum is unsupported"),
    (lambda made: made.SGD(nesterov=True, momentum=0.1), "is unsupported"),
    (lambda made: made.Adam(amsgrad=True), "parameter amsgrad is unsupported"),
    (lambda made: made.Adagrad(epsilon=0.5), "parameter epsilon is unsupported"),
    (lambda made: made.SGD(clipnorm=1.0), "parameter clipnorm is unsupported"),
    (lambda made: made.SGD(clipvalue=1.0), "parameter clipvalue is unsupported"),
    (lambda made: made.RMSprop(), "Keras optimizer RMSprop is unsupported"),
])
@pytest.mark.parametrize("family", FAMILIES)
def test_unsupported(family: str, make: Any, words: str) -> None:
    """A setting that the tables would not follow is refused by its name."""
    with pytest.raises(ValueError, match=words):
        translate_keras_optimizer(make(FAMILIES[family]))


def test_normalize() -> None:
    """Names have the defaults of the embedding API; optimizers of tables stay as they are."""
    import embeng

    for name, kind in (("sgd", api.SGD), ("adagrad", api.Adagrad), ("adam", api.Adam),
                       ("ftrl", api.FTRL)):
        assert isinstance(normalize_optimizer(name), kind)
    for given in (None, api.AdagradMomentum(0.5), EngineOptimizer(embeng.optimizers.rms_prop(0.1))):
        assert normalize_optimizer(given) is given
    for given in ("rmsprop", 3, object()):
        with pytest.raises(ValueError, match="Please"):
            normalize_optimizer(given)
    with pytest.raises(ValueError, match="unsupported optimizer class"):
        translate_keras_optimizer("sgd")
