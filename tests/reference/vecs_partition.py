# SPDX-License-Identifier: MIT
"""Vectors of partitioned CSR: both flavours, every option, its edges and its errors."""

import random

from vecbuild import Vector, dense, feature, ragged, sparse, splits, table

FLAVOURS = ("tf", "jax")
MOST = 1024
GRID = {"sparse_cores": 4, "cores_per_device": 2, "max_ids_per_partition": MOST,
        "max_unique_ids_per_partition": MOST}


def one(flavour, name, about, features=None, tables=None, **options):
    """A vector of one step over table t, unless told otherwise."""
    step = {"flavour": flavour, **GRID, **options}
    v = Vector(f"partition_{flavour}_{name}", about, tables or [table(rows=64, combiner="sum")],
               [feature()] if isinstance(features, dict) and set(features) == {"f"}
               else [feature(n, t) for n, t in sorted((options.get("on") or {}).items())])
    step.pop("on", None)
    error = step.pop("error", None)
    v.partition(features, error=error, **step)
    return v


def rows(seed, samples, most, ids, weighted=False):
    """Bags of up to so many ids; small dyadic weights of both signs."""
    r = random.Random(seed)
    bags = [[r.randrange(ids) for _ in range(r.randrange(most + 1))] for _ in range(samples)]
    weights = [[r.randrange(-16, 33) / 8 for _ in bag] for bag in bags]
    return ragged(bags, weights if weighted else None)


def plain(f):
    yield one(f, "dense", "One id per sample: partition is column % cores, token column / cores, "
              "sample s of core c stands in row s.", {"f": dense([3, 64 - 1, 0, 17, 4, 8, 12, 1])})
    yield one(f, "ragged", "Bags, some empty; items of a partition by token, then sample.",
              {"f": ragged([[5, 1, 9], [], [2, 6], [5], [63, 0], [1], [], [1, 4, 7, 10]])})
    yield one(f, "splits", "Bags by row splits.",
              {"f": splits([8, 8, 3, 60, 2], [0, 2, 2, 4, 5], [1.0, 0.5, 2.0, -1.0, 0.25])})
    yield one(f, "sparse", "Bags by indices; a sample without any stays empty.",
              {"f": sparse([[0, 0], [0, 1], [3, 0], [3, 4]], [7, 11, 7, 3], [4, 8])})
    yield one(f, "empty", "No id at all: row pointers stay where each core begins.",
              {"f": ragged([[], [], [], []])})
    yield one(f, "one_core", "A grid of one core has one partition, and 8 row pointers.",
              {"f": rows(1, 6, 4, 64)}, sparse_cores=1, cores_per_device=1)
    yield one(f, "all_cores_of_one_device", "The device's cores are the whole grid.",
              {"f": rows(2, 8, 5, 64)}, cores_per_device=4)
    yield one(f, "sixteen_cores", "More partitions than one line of row pointers.",
              {"f": rows(3, 8, 6, 64)}, sparse_cores=16)
    yield one(f, "second_device", "Which device it is changes nothing: its samples alone are given.",
              {"f": rows(2, 8, 5, 64)}, device=1)
    yield one(f, "one_hot_partition", "All ids in one partition: the others are empty, and each "
              "core's row pointers repeat.", {"f": ragged([[4, 8, 12, 16], [20, 24], [28], [32]])})
    yield one(f, "exactly_eight", "A partition of eight items is not padded, one of nine is.",
              {"f": ragged([[0, 4, 8, 12, 16, 20, 24, 28], [1, 5, 9, 13, 17, 21, 25, 29, 33]])})
    yield one(f, "largest_ids", "The last rows of a table that the cores do not divide.",
              {"f": dense([1001, 1000, 999, 998])}, [table(rows=1002, combiner="sum")])


def gains(f):
    for combiner in ("sum", "mean", "sqrtn"):
        yield one(f, f"{combiner}_weights", f"Gains are weights times the scale of {combiner}, of "
                  "all the sample's weights.", {"f": rows(4, 8, 5, 64, True)},
                  [table(rows=64, combiner=combiner)])
        yield one(f, f"{combiner}_unweighted", f"Gains of {combiner} without weights.",
                  {"f": rows(5, 8, 5, 64)}, [table(rows=64, combiner=combiner)])
    yield one(f, "zero_denominator", "Weights that add up to 0: the scale is 0, the items stay.",
              {"f": ragged([[1, 2], [3], [5, 5], [6]], [[1.0, -1.0], [0.0], [2.0, -2.0], [4.0]])},
              [table(rows=64, combiner="mean")])
    yield one(f, "adjacent_duplicates", "Equal ids side by side become one, their gains added; the "
              "scale is of all of them.", {"f": ragged([[7, 7, 7, 3], [3, 3], [9], [9, 9]])},
              [table(rows=64, combiner="mean")])
    yield one(f, "scattered_duplicates", "Equal ids apart become one, too; those of other samples "
              "do not.", {"f": ragged([[7, 3, 7, 11, 3, 7], [7], [7, 2, 7], [2, 7]],
                                      [[1, 2, 4, 8, 16, 32], [64], [1, 2, 4], [8, 16]])})
    yield one(f, "same_id_everywhere", "One id in every sample: one column, many items.",
              {"f": ragged([[5, 5]] * 12)})


def stacked(f):
    two = [table("a", rows=20, combiner="sum"), table("b", rows=70, combiner="mean"),
           table("c", rows=9, combiner="sqrtn")]
    features = {"x": rows(6, 8, 4, 20), "y": rows(7, 4, 3, 70, True), "z": dense([8, 0, 5, 1])}
    names = {"x": "a", "y": "b", "z": "c"}
    yield one(f, "stacked", "Three tables: each is padded to 8 rows per core, rotated by the cores "
              "of a device more than the one before, and stands behind it; the samples of each "
              "core stand feature behind feature.", features, two, on=names)
    yield one(f, "stacked_rotation_1", "The same, each table rotated by one core more.", features,
              two, on=names, rotation=1)
    yield one(f, "stacked_rotation_0", "The same without rotation.", features, two, on=names,
              rotation=0)
    yield one(f, "stacked_rotation_7", "Rotation is modulo the cores.", features, two, on=names,
              rotation=7)
    yield one(f, "shared_table", "Two features of one table: equal columns are unique once, though "
              "their samples differ.", {"x": rows(8, 4, 4, 20), "y": rows(9, 8, 4, 20)},
              [table("a", rows=20, combiner="sum")], on={"x": "a", "y": "a"})


def limits(f):
    bags = ragged([[0, 4, 8, 12], [0, 4], [0, 1], [5]])
    yield one(f, "limit_reached", "Exactly as many ids and unique ids as the limits allow.",
              {"f": bags}, max_ids_per_partition=6, max_unique_ids_per_partition=4)
    over = {"errno": "ERANGE", "contains": ["too many ids"]}
    yield one(f, "ids_over_limit", "One id more than the limit is an error.", {"f": bags},
              max_ids_per_partition=5, error=over)
    yield one(f, "unique_over_limit", "One unique id more than the limit is an error.",
              {"f": bags}, max_unique_ids_per_partition=3, error=over)
    yield one(f, "drop_by_ids", "Dropping keeps ids in their order up to the limit; what was there "
              "before is still counted.", {"f": rows(10, 12, 8, 64)}, max_ids_per_partition=3,
              allow_id_dropping=True)
    yield one(f, "drop_by_unique", "Dropping keeps all ids of as many columns as allowed.",
              {"f": rows(11, 12, 8, 24)}, max_unique_ids_per_partition=2, allow_id_dropping=True)
    yield one(f, "drop_by_both", "Whichever limit is reached first.", {"f": rows(12, 16, 8, 48)},
              max_ids_per_partition=6, max_unique_ids_per_partition=3, allow_id_dropping=True)
    yield one(f, "drop_duplicates", "Ids equal to a dropped one of their sample: jax counts each "
              "of them, tf all as one.",
              {"f": ragged([[0, 0, 4, 4, 4, 8, 8], [0, 4], [1], [1, 1]])},
              max_ids_per_partition=2, allow_id_dropping=True)
    yield one(f, "dropping_not_needed", "Allowing it drops nothing that fits.", {"f": bags},
              max_ids_per_partition=6, max_unique_ids_per_partition=4, allow_id_dropping=True)


def minibatches(f):
    features = {"f": rows(13, 24, 10, 512)}
    wide = [table(rows=512, combiner="mean")]
    yield one(f, "minibatching_not_needed", "Within the limits there is one minibatch, and ids "
              "stand by token; row pointers count from where the device's buffer begins.",
              features, wide, minibatching=True)
    for bucket in ("div", "mod", "hash"):
        yield one(f, f"minibatches_{bucket}", f"Beyond the limit ids go into minibatches of whole "
                  f"buckets, by {bucket}; inside a partition by bucket, token, sample.", features,
                  wide, minibatching=True, bucket=bucket, max_ids_per_partition=9)
        yield one(f, f"minibatches_{bucket}_tight", f"Many minibatches, by {bucket}.",
                  {"f": rows(14, 32, 12, 512)}, wide, minibatching=True, bucket=bucket,
                  max_ids_per_partition=5, max_unique_ids_per_partition=5)
    yield one(f, "minibatches_default_bucket", "The bucket that a flavour has by itself.",
              features, wide, minibatching=True, max_ids_per_partition=9)
    yield one(f, "minibatches_by_unique", "Minibatches for the sake of unique ids alone.",
              {"f": rows(15, 24, 8, 256)}, [table(rows=256, combiner="sum")], minibatching=True,
              bucket="mod", max_unique_ids_per_partition=6)
    yield one(f, "minibatches_skewed", "One crowded bucket: what lies beside it is put together "
              "again as far as it fits.",
              {"f": ragged([[k * 4 for k in range(8)], [k * 4 for k in range(32, 40)],
                            [k * 4 for k in range(64, 70)], [508, 4, 128]] * 2)}, wide,
              minibatching=True, bucket="div", max_ids_per_partition=20)
    joined = [k * 4 for k in (*range(6), *range(32, 38), *range(64, 67))]
    yield one(f, "minibatches_joined", "Of three pieces of 6, 6 and 3 ids the last two fit "
              "together.", {"f": ragged([joined] * 4)}, wide, minibatching=True, bucket="div",
              max_ids_per_partition=10)
    crowded = {"f": ragged([[0, 256, 512, 768, 1, 2], [256, 0], [3, 7], [0, 256, 512, 768]])}
    deep = [table(rows=1024, combiner="sum")]
    yield one(f, "bucket_over_limit", "A single bucket beyond the limit is an error.", crowded,
              deep, minibatching=True, bucket="mod", max_ids_per_partition=3,
              error={"errno": "ERANGE", "contains": ["too many ids"]})
    yield one(f, "bucket_dropped", "With dropping, a bucket keeps what the limit allows.", crowded,
              deep, minibatching=True, bucket="mod", max_ids_per_partition=3,
              allow_id_dropping=True)
    yield one(f, "bucket_dropped_unique", "So by unique ids.", crowded, deep, minibatching=True,
              bucket="mod", max_unique_ids_per_partition=2, allow_id_dropping=True)
    yield one(f, "minibatches_stacked", "Buckets are of the columns of the whole stack.",
              {"x": rows(16, 12, 8, 100), "y": rows(17, 8, 8, 300, True)},
              [table("a", rows=100, combiner="sum"), table("b", rows=300, combiner="mean")],
              on={"x": "a", "y": "b"}, minibatching=True, bucket="div", max_ids_per_partition=10)


def buffers(f):
    features = {"f": rows(18, 8, 6, 64)}
    yield one(f, "buffer_given", "A buffer that is large enough.", features,
              suggested_buffer_size=256)
    yield one(f, "buffer_too_small", "What the buffer does not hold is an error.", features,
              suggested_buffer_size=32, error={"errno": "ERANGE", "contains": ["buffer"]})
    yield one(f, "buffer_drops", "With dropping, items end with the buffer, and row pointers stay "
              "at its end.", features, suggested_buffer_size=32, allow_id_dropping=True)
    yield one(f, "buffer_drops_minibatches", "So in minibatches, whose buffer all cores share.",
              {"f": rows(13, 24, 10, 512)}, [table(rows=512, combiner="mean")], minibatching=True,
              bucket="mod", max_ids_per_partition=9, suggested_buffer_size=112,
              allow_id_dropping=True)


def errors(f):
    fine = {"f": dense([1, 2, 3, 4])}
    for name, errno, contains, options in (
            ("no_cores", "ERANGE", ["sparse_cores"], {"sparse_cores": 0}),
            ("cores_do_not_divide", "EINVAL", ["cores_per_device"], {"cores_per_device": 3}),
            ("no_such_device", "ERANGE", ["device", "2"], {"device": 2}),
            ("no_such_bucket", "EINVAL", ["bucket"], {"bucket": "sum"}),
            ("limit_below_1", "ERANGE", ["max_ids_per_partition"],
             {"max_ids_per_partition": 0})):
        yield one(f, f"error_{name}", "A setting that cannot be.", fine,
                  error={"errno": errno, "contains": contains}, **options)
    yield one(f, "error_samples", "Samples that the device's cores do not divide.",
              {"f": dense([1, 2, 3])}, error={"errno": "EINVAL", "contains": ["f", "3"]})
    yield one(f, "error_id", "An id outside of its table is named by feature, sample and value.",
              {"f": ragged([[1], [2], [3, 64], [1]])},
              error={"errno": "ERANGE", "contains": ["f", "sample 2", "64"]})
    yield one(f, "error_negative_id", "So is a negative one.", {"f": ragged([[1], [-5]])},
              error={"errno": "ERANGE", "contains": ["f", "sample 1", "-5"]})


def of_one_flavour():
    yield one("tf", "six_cores", "A grid of six cores; row pointers are filled up to eight.",
              {"f": rows(19, 8, 6, 64)}, sparse_cores=6)
    yield one("tf", "error_buffer_multiple", "The buffer is a multiple of 8.",
              {"f": dense([1, 2])}, suggested_buffer_size=12,
              error={"errno": "EINVAL", "contains": ["12"]})
    yield one("jax", "error_six_cores", "The grid is a power of two.", {"f": dense([1, 2])},
              sparse_cores=6, error={"errno": "EINVAL", "contains": ["power of two"]})
    yield one("jax", "buffer_rounded_up", "The buffer is rounded up to 8 items for each core.",
              {"f": rows(18, 8, 6, 64)}, suggested_buffer_size=241)
    yield one("jax", "error_buffer_too_large", "A buffer larger than what the limits ask for.",
              {"f": dense([1, 2])}, max_ids_per_partition=8, suggested_buffer_size=65,
              error={"errno": "ERANGE", "contains": ["80", "64"]})
    yield one("jax", "segment_of_the_limit", "Without a size, a core's part of the buffer is what "
              "the limit asks for: items of the second core are counted from its own.",
              {"f": rows(20, 8, 4, 64)}, max_ids_per_partition=13)


def vectors():
    for f in FLAVOURS:
        for script in (plain, gains, stacked, limits, minibatches, buffers, errors):
            yield from script(f)
    yield from of_one_flavour()
