# SPDX-License-Identifier: MIT
"""Vectors of updates without a lookup, and of batches that are discarded."""

from vecbuild import (Vector, adagrad, dense, feature, nested, numbers, ragged, sgd, sparse, table)

EPROTO = {"errno": "EPROTO"}
LATE = {"errno": "ETIME"}
ADAM = {"kind": "adam", "learning_rate": 0.125, "bias_correction": True}


def model(name, about, optimizer=None, engine=None, **more):
    return Vector(name, about, [table(rows=6, dim=2, optimizer=optimizer or sgd(0.25), **more)],
                  [feature()], engine=engine)


def ones(samples, x=1.0):
    return {"f": [[x, -x]] * samples}


def updates():
    v = model("update_without_lookup", "Updates of batches that nobody looked up, of any size, with "
              "weights and ids that occur twice.", adagrad(0.25))
    v.update({"f": ragged([[1, 2], [5]])}, {"f": nested(numbers(4, 1), [2, 2])})
    v.update({"f": sparse([[0, 0], [0, 1], [2, 0]], [2, 2, 5], [3, 2], [0.5, 2.0, 1.0])},
             {"f": nested(numbers(6, 2), [3, 2])})
    v.table()
    v.table(slot="accumulators")
    v.update({"f": dense([])}, {"f": []})
    v.update({"f": dense([4])}, {"f": nested(numbers(2, 3), [1, 2])})
    v.table()
    v.stats("t", "ids", "unique_ids")
    return v


def between():
    v = model("update_between_steps", "Updates and whole steps in turn: both count alike.", ADAM)
    v.train({"f": dense([1, 2])})
    v.update({"f": dense([2, 3])}, ones(2))
    v.train({"f": dense([3, 1])}, seed=2)
    v.update({"f": dense([1])}, ones(1, 0.5))
    v.table()
    v.table(slot="momenta")
    v.table(slot="velocities")
    return v


def forwards():
    v = model("update_behind_two_forwards", "Two inference lookups come before their updates, as of "
              "a program that computes gradients later.", adagrad(0.25))
    for seed in (1, 2):
        v.lookup({"f": ragged([[1, 2], [5]])}, training=False)
        v.lookup({"f": ragged([[2]])}, training=False)
        v.update({"f": ragged([[1, 2], [5]])}, {"f": nested(numbers(4, seed), [2, 2])})
        v.update({"f": ragged([[2]])}, {"f": nested(numbers(2, seed), [1, 2])})
    v.table()
    return v


def replicas():
    v = model("update_of_replicas", "Each replica gives its part of an update; a part that is looked "
              "up and one that is not make a step.", adagrad(0.25), engine={"replicas": 2})
    v.update({"f": dense([1, 2])}, ones(2))
    v.update({"f": dense([2])}, ones(1, 0.5), replica=1)
    v.table()
    v.lookup({"f": dense([2, 3])})
    v.update({"f": dense([3, 3, 1])}, ones(3), replica=1)
    v.apply(v.grads(2))
    v.table()
    v.table(slot="accumulators")
    return v


def rates():
    v = model("update_with_rates", "Rates and multiplier of an update; without its rate it is refused "
              "and changes nothing.", sgd({"dynamic": "r"}), engine={"replicas": 2})
    v.update({"f": dense([1])}, ones(1), error={"errno": "EINVAL", "contains": ["r"]})
    v.update({"f": dense([1])}, ones(1), rates={"r": 0.5}, multiplier=2.0)
    v.update({"f": dense([2])}, ones(1), replica=1, rates={"r": 0.25}, multiplier=2.0,
             error={"errno": "EINVAL", "contains": ["r"]})
    v.update({"f": dense([2])}, ones(1), replica=1, rates={"r": 0.5}, error={"errno": "EINVAL"})
    v.update({"f": dense([2])}, ones(1), replica=1, rates={"r": 0.5}, multiplier=2.0)
    v.table()
    return v


def refused():
    v = model("update_refused", "An id, a gradient's shape, or a number that is refused leaves no "
              "trace: Adam's next step is its first.", ADAM)
    v.update({"f": dense([1, 6])}, ones(2), error={"errno": "ERANGE", "contains": ["f", "6"]})
    v.update({"f": dense([1, 2])}, ones(3), error={"errno": "EINVAL", "contains": ["f"]})
    v.update({"f": dense([1])}, {"f": [["nan", 0.0]]}, error={"errno": "ERANGE"})
    v.update({"f": dense([1])}, {"f": [[1.0, 0.0]]}, replica=1, error={"errno": "ERANGE"})
    v.update({"f": dense([1, 2])}, ones(2))
    v.table()
    return v


def behind_view():
    v = model("update_behind_a_view", "An update comes behind the views of its replica, which wait for "
              "gradients or are discarded.")
    v.lookup({"f": dense([1, 2])})
    v.update({"f": dense([3])}, ones(1), error=LATE)
    v.apply(v.grads(1))
    v.update({"f": dense([3])}, ones(1))
    v.lookup({"f": dense([1, 2])})
    v.update({"f": dense([3])}, ones(1), error=LATE)
    v.discard()
    v.update({"f": dense([3])}, ones(1))
    v.table()
    return v


def sequences():
    v = Vector("update_of_a_sequence", "Gradients of each position of a sequence feature, and of a "
               "table that two features share; no gradient is zeros.",
               [table(rows=6, dim=2, optimizer=ADAM)],
               [feature("s", max_sequence_length=2), feature("f")])
    v.update({"s": ragged([[1, 2, 3], [4]]), "f": dense([1, 5])},
             {"s": nested(numbers(8, 3), [2, 2, 2])})
    v.table()
    v.table(slot="velocities")
    return v


def pipelined():
    v = model("update_with_pipelining", "With pipelining an update is held until the next batch has "
              "come, unless somebody looks.", adagrad(0.25), engine={"pipelining": True})
    v.update({"f": dense([1, 2])}, ones(2))
    v.lookup({"f": dense([1, 2])})
    v.apply(v.grads(1))
    v.lookup({"f": dense([1, 2])})
    v.discard()
    v.update({"f": dense([2])}, ones(1, 0.5))
    v.lookup({"f": dense([1, 2])})
    v.table()
    v.apply(v.grads(2))
    v.table()
    return v


def discard_adam():
    v = model("discard_counts_no_step", "A discarded batch touches no row and is no step of Adam, "
              "while gradients that are null are both.", ADAM)
    v.train({"f": dense([1, 2])})
    for _ in range(2):
        v.lookup({"f": dense([2, 3])})
        v.discard()
    v.table()
    v.train({"f": dense([1, 2])}, seed=2)
    v.lookup({"f": dense([1, 2])})
    v.apply()
    v.train({"f": dense([3])}, seed=3)
    v.table()
    v.table(slot="momenta")
    v.table(slot="velocities")
    v.stats("t", "ids", "unique_ids")
    return v


def discard_non_lazy():
    v = model("discard_leaves_all_rows", "Adam over all rows does not run in a step that is discarded.",
              {**ADAM, "lazy_adam": False})
    v.train({"f": dense([1, 2])})
    v.lookup({"f": dense([3, 4])})
    v.discard()
    v.table()
    v.train({"f": dense([0])}, seed=2)
    v.table()
    return v


def discard_one():
    v = model("discard_of_one_replica", "The other replica's gradients are applied and the step counts; "
              "one that both discard counts not.", ADAM, engine={"replicas": 2})
    for first, second in ((True, False), (False, True), (True, True), (False, False)):
        for replica, ids in enumerate(([1, 2], [2, 2])):
            v.lookup({"f": dense(ids)}, replica=replica)
        for replica, gone in enumerate((first, second)):
            if gone:
                v.discard(replica)
            else:
                v.apply(v.grads(replica + 1, replica=replica), replica=replica)
        v.table()
    v.stats("t", "ids", "unique_ids")
    return v


def discard_order():
    v = model("discard_of_the_oldest", "The oldest dequeued batch is discarded; the one enqueued behind "
              "it sees the tables as they are.", adagrad(0.25))
    v.discard(error=EPROTO)
    v.enqueue({"f": dense([1, 2])})
    v.discard(error=EPROTO)
    v.enqueue({"f": dense([2, 3])})
    v.dequeue()
    v.dequeue(error=LATE)
    v.discard()
    v.dequeue()
    v.apply(v.grads(1))
    v.discard(error=EPROTO)
    v.lookup({"f": dense([1, 2])}, training=False)
    v.discard(error=EPROTO)
    v.table()
    return v


def discard_saved():
    v = model("discard_before_a_save", "A checkpoint counts no discarded step.", ADAM)
    v.train({"f": dense([1, 2])})
    v.lookup({"f": dense([3])})
    v.discard()
    v.save()
    v.train({"f": dense([1, 2])}, seed=2)
    v.restore()
    v.train({"f": dense([1, 2])}, seed=2)
    v.table()
    v.table(slot="velocities")
    return v


def vectors():
    return [updates(), between(), forwards(), replicas(), rates(), refused(), behind_view(),
            sequences(), pipelined(), discard_adam(), discard_non_lazy(), discard_one(),
            discard_order(), discard_saved()]
