# SPDX-License-Identifier: MIT
"""The Python package on a device behind the driver: the bits of the soft device, checkpoints that
go from one to the other, and errors. In a virtual machine, where it says each result as TAP.

usage: python_device.py FOLDER NODE
"""
import os
import sys

import numpy

import embeng

STEPS = 20
TABLES = (("users", 300, 16), ("items", 1000, 24))
FEATURES = tuple(embeng.Feature(name, name) for name, _, _ in TABLES)


class Tap:
    """Results, said as they come."""
    number = failed = 0

    def check(self, holds, name, remark=""):
        self.number += 1
        self.failed += not holds
        print(f"{'ok' if holds else 'not ok'} {self.number} - {name}", flush=True)
        if not holds:
            print(f"# {remark}", flush=True)


def open_engine(device):
    tables = [embeng.Table(name, rows, dim, optimizer=embeng.optimizers.adagrad(0.05))
              for name, rows, dim in TABLES]
    return embeng.Engine(tables, FEATURES, device=device)


def fill(engine):
    rng = numpy.random.default_rng(5)
    for name, rows, dim in TABLES:
        engine[name].write(rng.standard_normal((rows, dim), dtype=numpy.float32))


def train(engine, steps, seed):
    """Returns all activations, as bytes."""
    rng, seen = numpy.random.default_rng(seed), []
    for _ in range(steps):
        inputs, gradients = {}, {}
        for name, rows, dim in TABLES:
            lengths = rng.integers(0, 6, 32)
            inputs[name] = embeng.Ragged(rng.integers(0, rows, lengths.sum()), lengths=lengths)
            gradients[name] = rng.standard_normal((32, dim), dtype=numpy.float32)
        found = engine.lookup(inputs)
        seen += [numpy.asarray(found[name]).tobytes() for name, _, _ in TABLES]
        engine.update(inputs, gradients)
    return seen


def bits(engine):
    """Rows and slots of all tables, as bytes."""
    return [engine[name].read(slot=slot).tobytes()
            for name, _, _ in TABLES for slot in (None, *engine[name].slots)]


def refusal_of(kind, call):
    """The sentence of an error of that kind, or ''."""
    try:
        call()
    except kind as error:
        return str(error)
    return ""


def check_steps(tap, soft, device):
    tap.check(train(soft, STEPS, 1) == train(device, STEPS, 1),
              f"{STEPS} steps of adagrad have the activations of soft")
    tap.check(bits(soft) == bits(device), "rows and slots have the bits of soft")
    tap.check(len(bits(device)) == 2 * len(TABLES), "each table has a slot")


def check_checkpoints(tap, soft, device, folder):
    saved = bits(device)
    device.save(os.path.join(folder, "of-device"))
    soft.save(os.path.join(folder, "of-soft"))
    train(device, 2, 2)
    tap.check(bits(device) != saved, "training goes on")
    device.restore(os.path.join(folder, "of-soft"))
    tap.check(bits(device) == saved, "the device restores what soft has saved")
    train(soft, 2, 2)
    soft.restore(os.path.join(folder, "of-device"))
    tap.check(bits(soft) == saved, "and soft what the device has saved")


def check_errors(tap, device, node):
    before = bits(device)
    said = refusal_of(IndexError, lambda: device.lookup({"users": [3, 300], "items": [1, 2]}))
    tap.check("300" in said and "users" in said, "an id outside its table is told of", said)
    tap.check(bits(device) == before, "and leaves no trace")
    tap.check(train(device, 1, 3) != [], "the next step is taken")
    said = refusal_of(embeng.EmbengError, lambda: open_engine("/dev/accel/accel63"))
    tap.check("accel63" in said, "a node that is not there is told of", said)
    said = refusal_of(embeng.EmbengError, lambda: device["users"].numpy())
    tap.check(said, "no array shows memory that the device has for itself", said)
    listed = [one["name"] for one in embeng.device_list()]
    tap.check(node in listed, "device_list() has the device", str(listed))


def main():
    folder, node = sys.argv[1:]
    tap = Tap()
    with open_engine("soft") as soft, open_engine(node) as device:
        told = device.info()
        tap.check((told["name"], told["driver"]) == (node, "embeng"),
                  "the engine is on the device", str(told))
        fill(soft)
        fill(device)
        check_steps(tap, soft, device)
        check_checkpoints(tap, soft, device, folder)
        check_errors(tap, device, node)
    print(f"1..{tap.number}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
