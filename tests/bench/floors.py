# SPDX-License-Identifier: MIT
"""The cases of tests/bench/compare: the figures that `embeng bench` must reach, beside its peers
and beside the limits of the memory, and how they are computed.

A case is measured in rounds of steps, one process after another; its figures are made of the
results of all rounds.
"""
import statistics
from typing import Callable, NamedTuple


class Floor(NamedTuple):
    name: str
    floor: float
    aim: float
    less: bool = False  # is better

    def holds(self, value):
        return value <= self.floor if self.less else value >= self.floor

    def reached(self, value):
        return value <= self.aim if self.less else value >= self.aim


class Step(NamedTuple):
    """One process: who runs it, and the arguments of it."""
    peer: bool
    arguments: list


class Case(NamedTuple):
    title: str
    workload: str  # its input is written beforehand; if "", the command draws one
    steps: list
    floors: list
    figures: Callable  # makes {name: value} of [step][round] lists of results; not all have floors
    room: str = ""  # name of the figure that tells whether the limits leave the floor within reach

    def within_reach(self, figures):
        """Whether limits measured beside leave the floor: an attempt says little where not."""
        return not self.room or self.floors[0].holds(figures[self.room])


# The peer's partitions, M ids a second, where a stream was read at JAX_STREAM bytes a second.
JAX = {"W1": 46, "W2": 45, "W3": 36, "W4": 57, "W5": 46}
JAX_STREAM = 33.5e9

LOOKUPS = {"W1": (1.4, 1.6), "W2": (1.4, 1.65), "W3": (1.3, 1.55), "W4": (1.35, 1.65),
           "W5": (1.8, 2.2)}
ADAGRAD = {"W1": (5.5, 7.5), "W2": (6, 8.5), "W3": (4.5, 6.5), "W4": (10, 13), "W5": (2.8, 3.7)}
# Numbers of rows of a table of dim 16 and of dim 64: up to the most that fit the memory.
ROWS = {16: (100_000, 1_000_000, 10_000_000, 100_000_000),
        64: (100_000, 1_000_000, 10_000_000, 30_000_000)}
ROWS_STEP = {"tables": 1, "samples": 32_768, "pool": 20, "index": "int32"}  # as many ids as W1's
WITHIN = (1.15, 1.08)  # times the limit: floor and aim
PARTITION = {"W1": (3.5, 6), "W2": (3, 5), "W3": (3, 5), "W4": (2, 4), "W5": (2.7, 4.5)}


def middle(rounds, number):
    """Median over the rounds of a number of each round's first result."""
    return statistics.median(number(results[0]) for results in rounds)


def median_ms(result):
    return result["step_ms"]["median"]


def ratio(steps):
    """How many times longer the first step takes than the second."""
    return middle(steps[0], median_ms) / middle(steps[1], median_ms)


def of_limit(result):
    return result["of_limit"]


def limit_ms(result):
    return result["limit_ms"]


def mean_ms(result):
    return statistics.mean(result["run_ms"])


def engine_ms(result):
    return sum(result["stage_ms"][s] for s in ("check", "lookup", "partition", "update"))


def guarded(result):
    """Share of a step that validation, private copies and rings take."""
    return sum(result["stage_ms"][s] for s in ("check", "copy", "ring")) / mean_ms(result)


def beyond_tables(result):
    memory = result["memory"]
    return (memory["buffer_bytes"] + memory["engine_bytes"]) / memory["table_bytes"]


def of_jax(result):
    stream = result["limits"]["stream_bytes_per_s"]["median"]
    return result["ids_per_s"] / (JAX[result["workload"]] * 1e6 * stream / JAX_STREAM)


def options(workload, op, optimizer=None, threads=1):
    return (["--workload", workload, "--op", op, "--threads", str(threads)] +
            (["--optimizer", optimizer] if optimizer else []))


def peer_options(workload, op, optimizer):
    return [workload, op] + (["--optimizer", optimizer] if optimizer else [])


def against_torch(workload, op, optimizer, bounds, more=(), extra=None):
    """The peer's step and ours in turn; @more: floors that ours has beside, figured by @extra."""
    name = f"{workload} {op}{' ' + optimizer if optimizer else ''} over torch"

    def figures(steps):
        return {name: ratio(steps), **(extra(steps[1]) if extra else {})}

    return Case(name, workload, [Step(True, peer_options(workload, op, optimizer)),
                                 Step(False, options(workload, op, optimizer))],
                [Floor(name, *bounds), *more], figures)


def two_threads(op, optimizer, bounds):
    """Two threads can gain what the memory has left for a second, and little more. That depends
    on where a host puts the processors: on cores that share a way to the memory or not.
    """
    case = f"W1 {op}{' ' + optimizer if optimizer else ''}, "
    name, memory, share = (case + "two threads over one", case + "limits of two over one",
                           case + "two threads, share of the limit")

    def figures(steps):
        one, two = steps
        return {name: ratio(steps), memory: middle(one, limit_ms) / middle(two, limit_ms),
                share: middle(two, of_limit)}

    return Case(name, "W1", [Step(False, options("W1", op, optimizer)),
                             Step(False, options("W1", op, optimizer, threads=2))],
                [Floor(name, *bounds)], figures, memory)


LIMIT_LOOKUP = "W1 fwd, share of the gather limit"
LIMIT_TRAIN = "W1 train adagrad, share of the limit"
GUARDS = "W1 fwd, share of checks, copies and rings"
DIRECT = "W1 fwd, through a ring over the engine alone"
MEMORY = "W1 train adagrad, memory beyond tables and slots"
EMPTY = "ring, empty command, polled, us"
SMALL = "ring, bag of 20 beyond the engine, us"


def lookup_extra(rounds):
    return {LIMIT_LOOKUP: middle(rounds, of_limit),
            GUARDS: middle(rounds, guarded),
            DIRECT: middle(rounds, lambda r: mean_ms(r) / engine_ms(r))}


def train_extra(rounds):
    return {LIMIT_TRAIN: middle(rounds, of_limit),
            MEMORY: middle(rounds, beyond_tables)}


def table_of(rows, dim):
    """Case of one table: the time of an id beside the memory's limit for rows of this size and
    number."""
    name = f"{rows:,} rows of dim {dim}, share of the limit"
    shape = {**ROWS_STEP, "rows": rows, "dim": dim}
    arguments = [text for key, value in shape.items() for text in ("--" + key, str(value))]
    return Case(name, "", [Step(False, ["--op", "fwd", "--threads", "1", *arguments])],
                [Floor(name, *(1 / times for times in WITHIN))],
                lambda steps: {name: middle(steps[0], of_limit)})


def partition(workload):
    name = f"{workload} partition over the jax core"
    return Case(name, "", [Step(False, options(workload, "partition"))],
                [Floor(name, *PARTITION[workload])],
                lambda steps: {name: middle(steps[0], of_jax)})


def ring_figures(steps):
    def of(rounds, command, number):
        return statistics.median(number(r) for results in rounds for r in results
                                 if r["command"] == command and r["wait"] == "polled" and
                                 r["commands_per_step"] == 1)

    return {EMPTY: of(steps[0], "empty", lambda r: r["us_per_command"]["median"]),
            SMALL: of(steps[0], "bag of 20", lambda r: r["us_per_command"]["median"] -
                      r["engine_us_per_command"])}


def all_cases():
    lookups = [against_torch(w, "fwd", None, bounds) for w, bounds in LOOKUPS.items()]
    training = [against_torch(w, "train", "adagrad", bounds) for w, bounds in ADAGRAD.items()]
    lookups[0] = against_torch(
        "W1", "fwd", None, LOOKUPS["W1"],
        [Floor(LIMIT_LOOKUP, 0.85, 0.95), Floor(GUARDS, 0.04, 0.02, less=True),
         Floor(DIRECT, 1.02, 1.005, less=True)], lookup_extra)
    training[0] = against_torch(
        "W1", "train", "adagrad", ADAGRAD["W1"],
        [Floor(LIMIT_TRAIN, 0.70, 0.85), Floor(MEMORY, 0.10, 0.04, less=True)], train_extra)
    return (lookups + training +
            [against_torch("W1", "train", "sgd", (3, 3.6)),
             against_torch("W1", "train", "adam", (6.5, 8.5)),
             two_threads("fwd", None, (1.75, 1.95)),
             two_threads("train", "adagrad", (1.5, 1.85))] +
            [table_of(rows, dim) for dim, sizes in ROWS.items() for rows in sizes] +
            [partition(w) for w in PARTITION] +
            [Case("ring", "", [Step(False, options("W1", "ring"))],
                  [Floor(EMPTY, 1.5, 0.6, less=True), Floor(SMALL, 1, 0.3, less=True)],
                  ring_figures)])
