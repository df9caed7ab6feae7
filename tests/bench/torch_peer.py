#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Measures stock PyTorch on the workloads of `embeng bench`, or writes their input.

    torch_peer.py WORKLOAD OP [option...]

    WORKLOAD   W1 to W5, W1-zipf1.2, W1-same
    OP         fwd    lookups alone, under torch.inference_mode()
               train  forward, backward from a fixed output gradient, optimizer step

With --dump DIR it writes the ids, offsets, weights and gradients as raw little-endian files and
ends, so that `embeng bench --input DIR` runs on the same input; that needs python3-numpy alone.
Otherwise it prints one line of JSON; that needs python3-torch, too. Every input is a function of
workload, table and batch: numpy's PCG64.

glibc must be told to keep its memory, in huge pages, else W3 and W5 mostly time page faults on
temporaries; "malloc" in the output echoes what it was told:
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=68719476736:\
glibc.malloc.trim_threshold=68719476736
"""
import argparse
import json
import os
import sys
import time
from typing import NamedTuple, Optional

SEED = 20240229

# Criteo-Kaggle's tables; the largest kept at 10 M rows, the other large ones at 1.25 M.
CRITEO = [1460, 583, 10_000_000, 1_250_000, 305, 24, 12517, 633, 10, 93145, 5683, 1_250_000,
          3194, 27, 14992, 1_250_000, 10, 5652, 2173, 10, 1_250_000, 18, 15, 286181, 105, 142572]
MILLIONS = [1_000_000] * 8


class Workload(NamedTuple):
    number: int  # seed of its random stream
    rows: list
    dim: int
    samples: int
    pool: int  # ids of a sample
    pooled: bool = True
    zipf: Optional[float] = None  # exponent; None: uniform, 0: one row for all


WORKLOADS = {
    "W1": Workload(1, MILLIONS, 64, 4096, 20),
    "W2": Workload(2, MILLIONS, 64, 4096, 20, zipf=1.05),
    "W3": Workload(3, CRITEO, 128, 2048, 1, zipf=1.05),
    "W4": Workload(4, [16_000_000], 32, 16384, 50, zipf=1.05),
    "W5": Workload(5, [4_000_000], 128, 1024, 128, pooled=False),
    "W1-zipf1.2": Workload(11, MILLIONS, 64, 4096, 20, zipf=1.2),
    "W1-same": Workload(12, MILLIONS, 64, 4096, 20, zipf=0),
}


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("workload", choices=WORKLOADS)
    p.add_argument("op", choices=["fwd", "train"])
    p.add_argument("--optimizer", choices=["sgd", "adagrad", "adam"], default="adagrad",
                   help="of train; with sparse gradients SGD, Adagrad, SparseAdam")
    p.add_argument("--weights", action="store_true", help="per_sample_weights")
    p.add_argument("--dense", action="store_true", help="dense gradients of the weights")
    p.add_argument("--threads", type=int, default=1, help="the process stays on so many CPUs")
    p.add_argument("--index", choices=["int32", "int64"], default="int64")
    p.add_argument("--runs", type=int, default=7, help="a run is one pass over the batches")
    p.add_argument("--batches", type=int, default=4)
    p.add_argument("--scale", type=float, default=1.0, help="rows and samples times this, for tests")
    p.add_argument("--dump", metavar="DIR")
    a = p.parse_args(argv)
    if a.weights and not WORKLOADS[a.workload].pooled:
        p.error(f"{a.workload} does not pool, so its ids have no weights")
    if a.runs < 1 or a.batches < 1 or a.threads < 1 or not 0 < a.scale <= 1:
        p.error("runs, batches and threads go from 1, the scale lies above 0 and at most at 1")
    return a


def load(name, package):
    """The module, or an end that says what to install."""
    try:
        return __import__(name)
    except ImportError:
        sys.exit(f"torch_peer.py: {sys.executable} has no module {name}; install it with: "
                 f"apt-get install {package}")


def scaled(w, scale):
    """As embeng bench --scale does it."""
    return w._replace(rows=[max(1, int(r * scale)) for r in w.rows],
                      samples=max(8, int(w.samples * scale) // 8 * 8))


def make_cdf(np, w, rows):
    """Cumulative distribution of P(rank r) ~ 1 / (r + 1) ^ s on ranks 0 to rows - 1."""
    if not w.zipf:
        return None
    c = np.cumsum(np.arange(1, rows + 1, dtype=np.float64) ** -w.zipf)
    return c / c[-1]


def make_ids(np, w, rng, rows, cdf):
    n = w.samples * w.pool
    if w.zipf is None:
        return rng.integers(0, rows, n, dtype=np.int64)
    if not w.zipf:
        return np.full(n, rows // 2, dtype=np.int64)
    rank = np.minimum(np.searchsorted(cdf, rng.random(n)), rows - 1).astype(np.uint64)
    # Hot ranks are scattered, one to one: the prime is larger than any table.
    return (rank * np.uint64(2654435761) % np.uint64(rows)).astype(np.int64)


def make_batches(np, w, a):
    """batches[b][t] = (ids, offsets or None, weights or None)"""
    dt = np.int32 if a.index == "int32" else np.int64
    n = w.samples * w.pool
    batches = [[] for _ in range(a.batches)]
    cdfs = {rows: make_cdf(np, w, rows) for rows in set(w.rows)}
    for t, rows in enumerate(w.rows):
        for b in range(a.batches):
            rng = np.random.Generator(np.random.PCG64([SEED, w.number, t, b]))
            ids = make_ids(np, w, rng, rows, cdfs[rows]).astype(dt)
            offsets = np.arange(0, n, w.pool, dtype=dt) if w.pooled else None
            weights = rng.random(n, dtype=np.float32) + np.float32(0.5) if a.weights else None
            batches[b].append((ids, offsets, weights))
    return batches


def make_gradient(np, w):
    shape = (w.samples, w.dim) if w.pooled else (w.samples, w.pool, w.dim)
    rng = np.random.Generator(np.random.PCG64([SEED, 99]))
    return (rng.random(shape, dtype=np.float32) - np.float32(0.5)) * np.float32(1e-2)


def dump(folder, batches, gradient):
    os.makedirs(folder, exist_ok=True)
    for b, columns in enumerate(batches):
        for t, column in enumerate(columns):
            for name, array in zip(("ids", "offsets", "weights"), column):
                if array is not None:
                    array.tofile(f"{folder}/{name}_{b}_{t}.bin")
    gradient.tofile(f"{folder}/grad.bin")


def make_table(torch, rows, dim, generator):
    table = torch.empty(rows, dim)
    block = torch.empty(min(rows, 65536), dim).uniform_(-0.05, 0.05, generator=generator)
    for i in range(0, rows, 65536):
        table[i:i + 65536] = block[:min(65536, rows - i)]
    return table


def make_modules(torch, w, a):
    generator = torch.Generator().manual_seed(SEED)
    modules = []
    for rows in w.rows:
        table = make_table(torch, rows, w.dim, generator)
        if w.pooled:
            modules.append(torch.nn.EmbeddingBag(rows, w.dim, mode="sum", sparse=not a.dense,
                                                 _weight=table))
        else:
            modules.append(torch.nn.Embedding(rows, w.dim, sparse=not a.dense, _weight=table))
    return modules


def make_optimizer(torch, a, parameters):
    if a.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=0.01)
    if a.optimizer == "adagrad":
        return torch.optim.Adagrad(parameters, lr=0.01)
    return (torch.optim.Adam if a.dense else torch.optim.SparseAdam)(parameters, lr=0.001)


def make_step(torch, w, a, gradient):
    """A function of one batch that does what is timed."""
    modules = make_modules(torch, w, a)

    def forward(batch):
        if not w.pooled:
            return [m(ids.view(w.samples, w.pool)) for m, (ids, _, _) in zip(modules, batch)]
        return [m(*column) for m, column in zip(modules, batch)]

    if a.op == "fwd":
        def lookup(batch):
            with torch.inference_mode():
                forward(batch)
        return lookup
    optimizer = make_optimizer(torch, a, [m.weight for m in modules])

    def train(batch):
        out = forward(batch)
        torch.autograd.backward(out, [gradient] * len(out))
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return train


def measure(step, batches, runs):
    """Seconds a step of each run."""
    for batch in batches:
        step(batch)
    times = []
    for _ in range(runs):
        began = time.perf_counter()
        for batch in batches:
            step(batch)
        times.append((time.perf_counter() - began) / len(batches))
    return times


def run(w, a, batches, gradient):
    os.environ["OMP_NUM_THREADS"] = str(a.threads)  # before torch is imported
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:a.threads]))
    torch = load("torch", "python3-torch")
    torch.set_num_threads(a.threads)
    tensors = [[tuple(None if x is None else torch.from_numpy(x) for x in column)
                for column in columns] for columns in batches]
    step = make_step(torch, w, a, torch.from_numpy(gradient))
    ms = [t * 1e3 for t in measure(step, tensors, a.runs)]
    ordered = sorted(ms)
    return {
        "peer": "torch", "version": torch.__version__, "workload": a.workload, "op": a.op,
        "optimizer": a.optimizer if a.op == "train" else None, "dense": a.dense,
        "weights": a.weights, "id_type": a.index, "threads": a.threads, "scale": a.scale,
        "runs": a.runs, "batches": a.batches,
        "ids_per_step": len(w.rows) * w.samples * w.pool, "run_ms": ms,
        "step_ms": {"min": ordered[0], "median": ordered[len(ms) // 2], "max": ordered[-1]},
        "malloc": os.environ.get("GLIBC_TUNABLES", "")}


def main():
    a = parse(sys.argv[1:])
    np = load("numpy", "python3-numpy")
    w = scaled(WORKLOADS[a.workload], a.scale)
    batches, gradient = make_batches(np, w, a), make_gradient(np, w)
    if a.dump:
        dump(a.dump, batches, gradient)
    else:
        print(json.dumps(run(w, a, batches, gradient)))


if __name__ == "__main__":
    main()
