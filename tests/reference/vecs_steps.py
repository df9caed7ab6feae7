# SPDX-License-Identifier: MIT
"""Vectors of the order of steps: enqueueing ahead, pipelining, drains, inference."""

from vecbuild import Vector, adagrad, dense, feature, ragged, sgd, table

EPROTO = {"errno": "EPROTO"}
LATE = {"errno": "ETIME"}
PIPELINED = {"pipelining": True}


def model(name, about, optimizer=None, engine=None):
    return Vector(name, about, [table(rows=6, dim=2, optimizer=optimizer or sgd(0.25))],
                  [feature()], engine=engine)


def fill(x):
    return {"f": {"fill": x}}


def apply_early():
    v = model("apply_before_dequeue", "Gradients for a batch that is not dequeued yet: an error, "
              "and the step goes on.")
    v.apply(fill(1), error=EPROTO)
    v.enqueue({"f": dense([1, 2])})
    v.apply(fill(1), error=EPROTO)
    v.dequeue()
    v.apply(fill(1))
    v.table()
    return v


def apply_twice():
    v = model("apply_twice", "One update a step: the second is an error and changes nothing.",
              adagrad(0.25))
    v.train({"f": dense([1, 2])})
    v.apply(fill(1), error=EPROTO)
    v.table()
    v.table(slot="accumulators")
    v.train({"f": dense([1, 2])})
    v.table()
    return v


def apply_inference():
    v = model("apply_after_inference_only", "An inference batch takes no gradients.")
    v.lookup({"f": dense([1, 2])}, training=False)
    v.apply(fill(1), error=EPROTO)
    v.train({"f": dense([1, 2])})
    v.lookup({"f": dense([1, 2])}, training=False)
    v.apply(fill(1), error=EPROTO)
    v.table()
    return v


def dequeue_nothing():
    v = model("dequeue_of_nothing", "A dequeue with no batch before it fails at once, first and "
              "after all were taken; a refused batch is none.")
    v.dequeue(error={})
    v.enqueue({"f": dense([6])}, error={"errno": "ERANGE", "contains": ["f", "6"]})
    v.dequeue(error={})
    v.train({"f": dense([5, 0])})
    v.dequeue(error={})
    v.lookup({"f": dense([5, 0])}, training=False)
    v.table()
    return v


def dequeue_early():
    v = model("dequeue_before_update", "Step 2 cannot be read before the gradients of step 1: the "
              "dequeue fails and may be tried again.")
    v.enqueue({"f": dense([1, 2])})
    v.enqueue({"f": dense([2, 3])})
    v.dequeue()
    v.dequeue(error=LATE)
    v.apply(fill(1))
    v.dequeue()
    v.apply(fill(2))
    v.table()
    return v


def ahead():
    v = model("enqueue_ahead", "Four batches are enqueued before the first is taken; each sees "
              "every earlier update.", adagrad(0.25))
    for ids in ([1, 2], [2, 2], [2, 5], [1, 5]):
        v.enqueue({"f": dense(ids)})
    for seed in range(4):
        v.dequeue()
        v.apply(v.grads(seed))
    v.table()
    v.table(slot="accumulators")
    return v


def writes():
    v = model("fill_follows_lookups", "A write of rows comes after each lookup that was enqueued "
              "before it and waits for no gradients, and before all others.", sgd(0.5))
    v.enqueue({"f": dense([1, 2])})
    v.enqueue({"f": dense([2, 5])})
    v.fill({"kind": "constant", "a": 4.0})
    v.dequeue()
    v.apply(v.grads(1))
    v.dequeue()
    v.enqueue({"f": dense([1, 5])})
    v.apply(v.grads(2))
    v.fill({"kind": "constant", "a": -2.0}, first=1, count=1)
    v.dequeue()
    v.enqueue({"f": dense([1, 5])}, training=False)
    v.fill({"kind": "constant", "a": 8.0})
    v.dequeue()
    v.apply(v.grads(3))
    v.table()
    return v


def inference_between():
    v = model("inference_between_steps", "Inference sees every applied update, moves no state and "
              "may come between a dequeue and its gradients.", adagrad(0.25))
    infer = {"f": ragged([[0, 1], [2, 2]])}
    v.lookup(infer, training=False)
    for seed in (1, 2):
        v.lookup({"f": ragged([[1, 2], [5]])})
        v.lookup(infer, training=False)
        v.apply(v.grads(seed))
        v.lookup(infer, training=False)
    v.table()
    v.stats("t", "ids", "unique_ids")
    return v


def oldest_first():
    v = model("dequeue_oldest_first", "Training and inference batches come out in the order in "
              "which they went in.")
    v.enqueue({"f": dense([0, 1])})
    v.enqueue({"f": dense([2, 3])}, training=False)
    v.enqueue({"f": dense([4, 5])}, training=False)
    for _ in range(3):
        v.dequeue()
    v.apply(fill(1))
    v.lookup({"f": dense([0, 1])}, training=False)
    v.table()
    return v


def drain_only():
    v = model("dequeue_without_looking", "An empty expect takes the batch like any other.")
    for seed in (1, 2):
        v.enqueue({"f": dense([1, 2])})
        v.dequeue(only=[])
        v.apply(v.grads(seed))
    v.table()
    return v


def stale_by_one():
    v = model("pipelining_stale_by_one", "Lookup n sees update n-2 exactly: steps 1 and 2 the "
              "initial table, step 3 update 1; gradients come after the next lookup.",
              adagrad(0.25), PIPELINED)
    batch = {"f": dense([1, 2, 1])}
    v.lookup(batch)
    for seed in range(5):
        v.lookup(batch)
        v.apply(v.grads(seed))
    v.apply(v.grads(5))
    v.table()
    v.table(slot="accumulators")
    return v


def held_update():
    v = model("pipelining_held_update", "Gradients that came before the next lookup are held: the "
              "lookup sees the same as if they came after it.", sgd(0.25), PIPELINED)
    for seed in range(5):
        v.train({"f": dense([1, 2, 1])}, seed=seed)
    v.table()
    return v


def held_queue():
    v = model("pipelining_enqueue_ahead", "Batches enqueued ahead change nothing about what each "
              "sees.", sgd(0.25), PIPELINED)
    batch = {"f": ragged([[1, 2], [3]])}
    for _ in range(3):
        v.enqueue(batch)
    v.dequeue()
    v.dequeue()
    v.dequeue(error=LATE)
    v.apply(v.grads(1))
    v.dequeue()
    v.apply(v.grads(2))
    v.enqueue(batch)
    v.dequeue()
    v.apply(v.grads(3))
    v.apply(v.grads(4))
    v.table()
    return v


def drain_by(name, drain):
    v = model(f"pipelining_drain_by_{name}", f"A drain by {name} shows the held update, and yet the "
              "next lookup does not see it: it is stale by exactly one step.", sgd(0.25), PIPELINED)
    batch = {"f": dense([1, 2, 4])}
    v.train(batch, seed=1)
    drain(v)
    v.train(batch, seed=2)
    v.train(batch, seed=3)
    drain(v)
    drain(v)
    v.train(batch, seed=4)
    v.lookup(batch)
    v.apply(v.grads(5))
    v.table()
    return v


def drain_pending():
    v = model("pipelining_drain_without_gradients", "A drain while step 2 is looked up and its "
              "gradients are not there: step 1 is applied, step 2 goes on as before.",
              sgd(0.25), PIPELINED)
    batch = {"f": dense([1, 2, 4])}
    v.lookup(batch)
    v.lookup(batch)
    v.apply(v.grads(1))
    v.table()
    v.apply(v.grads(2))
    v.lookup(batch)
    v.apply(v.grads(3))
    v.table()
    v.lookup(batch)
    v.apply(v.grads(4))
    v.table()
    return v


def pipelined_order():
    v = model("pipelining_out_of_order", "With pipelining too: gradients without a dequeued batch, "
              "a third lookup without gradients, are errors.", sgd(0.25), PIPELINED)
    batch = {"f": dense([3, 4])}
    v.apply(fill(1), error=EPROTO)
    v.lookup(batch)
    v.lookup(batch)
    v.enqueue(batch)
    v.dequeue(error=LATE)
    v.apply(fill(1))
    v.dequeue()
    v.apply(fill(2))
    v.apply(fill(4))
    v.apply(fill(8), error=EPROTO)
    v.table()
    return v


def pipelined_rates():
    v = model("pipelining_keeps_rate_of_step", "A held update keeps the learning rate that came "
              "with it.", sgd({"dynamic": "lr"}), PIPELINED)
    for seed, rate in enumerate((0.5, 0.125, 1, 0.25)):
        v.train({"f": dense([1, 2])}, seed=seed, rates={"lr": rate})
    v.table()
    return v


def wrong_gradients():
    v = Vector("gradients_refused", "Gradients of another shape, or of a feature that is not "
               "there, are refused; the step may be given again.",
               [table(rows=6, dim=2)], [feature("likes"), feature("seq", max_sequence_length=2)])
    v.lookup({"likes": dense([1, 2]), "seq": ragged([[3], [4, 5]])})
    good = v.grads(1)
    shape = {"errno": "EINVAL", "contains": ["likes"]}
    v.apply({**good, "likes": [[1, 2]]}, error=shape)
    v.apply({**good, "likes": [[1, 2], [3, 4], [5, 6]]}, error=shape)
    v.apply({**good, "likes": [[1, 2, 3], [4, 5, 6]]}, error=shape)
    v.apply({**good, "seq": [[[1, 2]], [[3, 4]]]}, error={"errno": "EINVAL", "contains": ["seq"]})
    v.apply({**good, "shares": [[1, 2], [3, 4]]}, error={"errno": "ENOENT", "contains": ["shares"]})
    v.table()
    v.apply(good)
    v.table()
    return v


def vectors():
    yield from (make() for make in (
        apply_early, apply_twice, apply_inference, dequeue_nothing, dequeue_early, ahead, writes,
        inference_between, oldest_first, drain_only, stale_by_one, held_update, held_queue))
    yield drain_by("expect_table", lambda v: v.table())
    yield drain_by("inference", lambda v: v.lookup({"f": dense([1, 2, 4])}, training=False))
    yield from (make() for make in (drain_pending, pipelined_order, pipelined_rates,
                                    wrong_gradients))
