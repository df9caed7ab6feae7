#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write tests/golden/tpu.txt: configurations as other programs write them, and wrong ones.

    make_configs.py [--check]

--check writes nothing: exit status 1 when the file is not what comes out here.
"""
import pathlib
import sys

import reftpu as t
import written

FILE = pathlib.Path(__file__).resolve().parents[1] / "golden" / "tpu.txt"
HEAD = """\
# SPDX-License-Identifier: MIT
# TPUEmbeddingConfiguration and OptimizationParameters in hexadecimal, made by
# tests/reference/make_configs.py. Tab-separated, a line each:
#   exact NAME BYTES                  read and written again it gives the same bytes
#   other NAME BYTES BYTES            ... these bytes
#   refused NAME BYTES ERRNO WORDS    refused; the sentence has each of the words, parted by |
# "xN" behind BYTES: N times. With "optimizer-" before it the same of OptimizationParameters.
"""

CLIPPED = t.parameters(t.rate(0.25), t.SGD, t.limits(2, -1.0, 1.0), t.limits(7, upper=0.5))
KINDS = {
    "sgd": (t.rate(0.01), t.SGD),
    "sgd dynamic": (t.rate(tag=0), t.SGD),
    "sgd rate 0": (t.rate(0.0), t.SGD),
    "sgd decay": (t.rate(0.01), t.SGD, t.real(16, 0.125), t.integer(22, True)),
    "sgd without accumulation": (t.rate(0.01), t.SGD, t.integer(17, t.DISABLED)),
    "sgd packed": (t.rate(0.01), t.SGD, t.integer(28, t.ENABLED)),
    "sgd limits": (t.rate(0.01), t.SGD, t.limits(2, 0.0, 3.0), t.limits(7, -2.0, 0.0)),
    "sgd lower limits": (t.rate(0.01), t.SGD, t.limits(2, -1.5), t.limits(7, -2.0)),
    "sgd infinite limits": (t.rate(0.01), t.SGD, t.limits(2, float("-inf"), float("inf"))),
    "adagrad": (t.rate(0.1), t.ADAGRAD),
    "adagrad_momentum": (t.rate(0.1), t.adagrad_momentum()),
    "adagrad_momentum all": (t.rate(0.1), t.adagrad_momentum(0.5, True, 3.0, 0.75, 1e-6)),
    "ftrl": (t.rate(0.1), t.ftrl()),
    "ftrl all": (t.rate(0.1), t.ftrl(0.25, 0.5, -0.75, True, 2.0, True)),
    "assign": (t.rate(0.1), t.message(25, b"")),
    "momentum": (t.rate(0.1), t.message(8, t.real(1, 0.5) + t.integer(2, 1))),
    "lion": (t.rate(0.1), t.message(29, t.real(1, 0.5) + t.real(2, 0.25) + t.integer(3, 1))),
    "rms_prop": (t.rate(0.1), t.message(9, t.real(1, 0.5) + t.real(2, 0.25) + t.real(3, 1e-3))),
    "centered_rms_prop": (t.rate(0.1), t.message(10, t.real(1, 0.5) + t.real(2, 0.25)
                                                 + t.real(3, 1e-3))),
    "adadelta": (t.rate(0.1), t.message(12, t.real(1, 0.5) + t.real(2, 0.25))),
    "proximal_adagrad": (t.rate(0.1), t.message(14, t.real(1, 0.5) + t.real(2, 0.25))),
    "bounded_adagrad": (t.rate(0.1), t.message(19, t.integer(1, 1) + t.real(2, 0.25)
                                               + t.real(3, 8.0))),
    "online_yogi": (t.rate(0.1), t.message(20, t.real(1, 0.5) + t.real(2, 0.25)
                                           + t.real(3, 0.75))),
    "proximal_yogi": (t.rate(0.1), t.message(21, t.real(1, 0.5) + t.real(2, 0.25) + t.real(3, 0.75)
                                             + t.real(4, 0.125) + t.real(5, 1e-3))),
    "frequency_estimator": (t.rate(0.1), t.message(23, t.real(1, 0.5) + t.real(2, 100.0)
                                                   + t.real(3, 3.0) + t.real(4, 0.75))),
    "frequency_aware_adagrad": (t.rate(0.1), t.message(30, t.real(1, 0.5) + t.real(2, 0.25)
                                                       + t.real(3, 10.0) + t.real(4, 0.75)
                                                       + t.real(5, 0.125) + t.real(6, 0.0625))),
    "mdl_adagrad_light": (t.rate(0.1), t.message(11, t.real(1, 0.5) + t.real(2, -0.75) + b"".join(
        t.real(k, k / 16) for k in range(3, 11)) + t.integer(11, 1) + t.integer(12, 1))),
    "adam": (t.rate(0.1), t.adam()),
    "adam all": (t.rate(0.1), t.adam(0.5, 0.25, 1e-3, True, False)),
}
USERS = t.table("users", 1000, 16, t.parameters(t.rate(tag=0), t.ADAGRAD))
ITEMS = t.table("items", 1 << 40, 4, CLIPPED)
TABLES = USERS + ITEMS
FEATURES = t.feature("watched", 1, [4, 3]) + t.feature("user", 0, [6]) \
    + t.feature("liked", 1, [6])
COUNTED = t.table("users", 1000, 16, t.parameters(t.rate(tag=0), t.ADAGRAD), 1) \
    + t.table("items", 1 << 40, 4, CLIPPED, 3)
NEWER = TABLES + t.engine(hosts=2, cores=8, pipelining=True) + FEATURES
ONE = t.table("users", 8, 2, t.parameters(t.rate(0.5), t.SGD))
SHORT = t.parameters(t.rate(0.5), t.SGD)


def counted(tag):
    """FrequencyAwareAdagrad whose step is given."""
    return t.message(30, t.real(3, 1.0) + t.real(6, 0.5) + t.message(7, t.integer(1, tag)))


def whole(*parts, tables=ONE):
    return tables + t.engine() + b"".join(parts)


def of(*parts):
    """A configuration whose only table has these parameters."""
    return whole(tables=t.table("users", 8, 2, t.parameters(*parts)))


def exact():
    yield "newer form", NEWER
    yield "older form", COUNTED + t.engine(batch=6, hosts=2, cores=8)
    yield "both forms", COUNTED + t.engine(batch=6, hosts=2, cores=8) + FEATURES
    yield "nothing but the engine", t.engine()
    yield "table without features", whole()
    yield "MOD", ONE + t.engine(sharding=1)
    yield "profile directory", ONE + t.engine(directory="gs://b\u00fccket/profile")
    yield "backward pass only", ONE + t.engine(mode=t.BACKWARD_PASS_ONLY)
    yield "SPMD", whole(t.message(11, t.integer(1, 1) + t.integer(2, 4) + t.integer(3, 1)))
    yield "inference", t.table("users", 8, 2) + t.engine(mode=t.INFERENCE)
    yield "step counter", of(t.rate(0.5), counted(0))
    yield "rate and step counter", of(t.rate(tag=0), counted(1))
    yield "step counter of two tables", t.table("a", 8, 2, t.parameters(t.rate(tag=0), counted(1))) \
        + t.table("b", 8, 2, t.parameters(t.rate(tag=1), counted(2))) + t.engine()
    yield "quantization", of(t.rate(0.5), t.SGD, t.quantization(256, -1.0, 0.5))
    yield "quantization from 0", of(t.rate(0.5), t.SGD, t.quantization(2, 0.0, 0.5))
    yield "inference of a quantized table", \
        t.table("users", 8, 2, t.quantization(5, -2.0, 2.0)) + t.engine(mode=t.INFERENCE)
    yield "packing, hot ids and quantization", \
        of(t.rate(0.5), t.SGD, t.integer(28, t.ENABLED), t.message(18, t.integer(1, 1)),
           t.quantization(16, -1.0, 1.0))
    for status in (1, 2, 3):
        yield f"hot ids {status}", of(t.rate(0.5), t.SGD, t.message(18, t.integer(1, status)))


def other():
    yield "no counts of hosts and cores", ONE + t.integer(2, t.TRAINING), whole()
    yield "no mode", ONE + t.engine(mode=0), whole()
    yield "no names", t.table("", 8, 2, SHORT) + t.engine() + t.feature("", 0, [1]), \
        t.table("table_0", 8, 2, SHORT) + t.engine() + t.feature("feature_0", 0, [1])
    yield "unpacked shape", whole(t.message(10, t.text(1, "a") + t.integer(3, 4) + t.integer(3, 5))), \
        whole(t.feature("a", 0, [4, 5]))
    yield "any order", t.feature("a", 0, [4]) + t.engine() + ONE, whole(t.feature("a", 0, [4]))
    yield "fewer rows than hosts", ONE + t.engine(hosts=9), \
        t.table("users", 9, 2, SHORT) + t.engine(hosts=9)
    yield "tags in another order", \
        t.table("a", 8, 2, t.parameters(t.rate(tag=1), t.SGD)) \
        + t.table("b", 8, 2, t.parameters(t.rate(tag=0), t.SGD)) + t.engine(), \
        t.table("a", 8, 2, t.parameters(t.rate(tag=0), t.SGD)) \
        + t.table("b", 8, 2, t.parameters(t.rate(tag=1), t.SGD)) + t.engine()
    yield "unspecified accumulation", \
        whole(tables=t.table("users", 8, 2, SHORT.replace(t.integer(17, 1), b""))), whole()
    yield "disabled packing", of(t.rate(0.5), t.SGD, t.integer(28, t.DISABLED)), whole()
    yield "limits without limits", of(t.rate(0.5), t.SGD, t.limits(2), t.limits(7)), whole()
    yield "decay's switch alone", of(t.rate(0.5), t.SGD, t.integer(22, 1)), whole()
    yield "quantization off", of(t.rate(0.5), t.SGD, t.message(27, t.integer(3, 4))), whole()
    yield "inference without a rate", \
        t.table("users", 8, 2, t.SGD) + t.engine(mode=t.INFERENCE), \
        t.table("users", 8, 2, t.parameters(t.rate(0.0), t.SGD)) + t.engine(mode=t.INFERENCE)
    yield "inference without a kind", \
        t.table("users", 8, 2, b"") + t.engine(mode=t.INFERENCE), \
        t.table("users", 8, 2) + t.engine(mode=t.INFERENCE)
    yield "no SPMD", whole(t.message(11, b"")), whole()
    yield "unknown fields of all types", \
        whole(t.integer(100, 7) + t.key(101, t.FIXED64) + bytes(8) + t.data(102, b"abc")
              + t.real(103, 1.0) + t.message(8, b"\1\2")), whole()
    yield "accumulator of old", \
        of(t.rate(0.5), t.message(3, t.real(1, 0.5)), t.integer(15, 1)), \
        of(t.rate(0.5), t.ADAGRAD)


PATH = "table_descriptor[0].optimization_parameters"


def wire_refused():
    yield "field number 0", whole(b"\0\0"), "EBADMSG", "no key of a field|number 0"
    yield "group", whole(b"\x0b"), "EBADMSG", "no key of a field|wire type 3"
    yield "key beyond 32 bits", whole(t.varint(1 << 33)), "EBADMSG", "no key of a field"
    yield "varint of 11 bytes", whole(b"\xff" * 10 + b"\1"), "EBADMSG", "within 64 bits"
    yield "varint of 65 bits", t.key(2, 0) + b"\xff" * 9 + b"\2", "EBADMSG", "mode|within 64 bits"
    yield "varint cut", t.key(2, 0) + b"\x80", "EBADMSG", "mode|ends"
    yield "key of 6 bytes", whole(b"\xbd\xfb\xff\xff\x86\0"), "EBADMSG", "more than 5 bytes"
    yield "length of 6 bytes", t.key(9, 2) + b"\x81\x80\x80\x80\x80\0a", "EBADMSG", \
        "profile_data_directory|more than 5 bytes"
    yield "value missing", t.key(2, 0), "EBADMSG", "mode|ends"
    yield "bytes cut", t.key(9, 2) + b"\5ab", "EBADMSG", "profile_data_directory|5 bytes|2 left"
    yield "float cut", t.message(1, t.message(5, t.key(16, 5) + b"\0\0")), \
        "EBADMSG", PATH + ".weight_decay_factor|4 bytes|2 left"
    yield "unknown cut", whole(t.key(100, 1) + b"\0"), "EBADMSG", "8 bytes|1 left"
    yield "wire type of a number", t.key(2, 5) + bytes(4), "EBADMSG", "mode|wire type is 5|must be 0"
    yield "wire type of a message", t.integer(1, 5), "EBADMSG", "table_descriptor[0]|must be 2"
    yield "packed singular", t.data(4, b"\1"), "EBADMSG", "num_hosts|wire type is 2|must be 0"
    yield "given twice", t.integer(2, 1) + t.integer(2, 2), "EBADMSG", "mode|twice"
    yield "two of one choice", whole(tables=t.table("a", 8, 2, SHORT + t.ADAGRAD)), "EBADMSG", \
        PATH + ".adagrad|stochastic_gradient_descent is given already"
    yield "integer beyond 32 bits", t.integer(4, 1 << 31), "ERANGE", "num_hosts|2147483648|32 bits"
    yield "integer below 32 bits", t.integer(4, -(1 << 31) - 1), "ERANGE", "num_hosts|32 bits"
    yield "packed beyond 32 bits", whole(t.message(10, t.packed(3, [1, 1 << 40]))), "ERANGE", \
        "feature_descriptor[0].input_shape[1]|32 bits"
    yield "packed cut", whole(t.message(10, t.data(3, b"\1\x80"))), "EBADMSG", \
        "feature_descriptor[0].input_shape[1]|ends"
    yield "no such enumerator", t.integer(2, 4), "ERANGE", "mode|4|enumerators"
    yield "switch of 2", t.integer(7, 2), "ERANGE", "pipeline_execution_with_tensor_core|0 or 1"
    yield "text no UTF-8", t.data(9, b"ab\xff"), "EBADMSG", "profile_data_directory|byte 2|UTF-8"
    yield "text with a zero", t.data(9, b"a\0b"), "EBADMSG", "profile_data_directory|byte 1|is 0"
    yield "too many tables", (t.message(1, b""), 4097), "ERANGE", \
        "table_descriptor[4096]|more than 4096"
    yield "too many unknown fields", (t.integer(100, 1), 4097), "EBADMSG", "4096 unknown"


def parameters_refused():
    yield "hosts below 0", ONE + t.engine(hosts=-1), "ERANGE", "num_hosts|-1"
    yield "cores below 0", ONE + t.engine(cores=-2), "ERANGE", "num_tensor_cores|-2"
    yield "SPMD cores below 0", whole(t.message(11, t.integer(2, -1))), "ERANGE", \
        "spmd_sharding.num_cores_per_replica|-1"
    yield "no parameters", whole(tables=t.table("a", 8, 2)), "EINVAL", PATH + "|missing"
    yield "no optimizer", of(t.rate(0.5)), "EINVAL", PATH + "|names no optimizer"
    yield "optimizer user_defined_program", of(t.rate(0.5), t.message(24, b"")), "ENOTSUP", \
        PATH + ".user_defined_program|no such optimizer"
    yield "power of mdl_adagrad_light", of(t.rate(0.5), t.message(11, t.real(2, 0.5))), "ERANGE", \
        "table_descriptor[0]|lr_power 0.5|0 or below"
    yield "step counter below 0", of(t.rate(0.5), counted(-2)), "ERANGE", \
        PATH + ".frequency_aware_adagrad.step_counter.tag|-2"
    yield "step counter of no table", of(t.rate(0.5), counted(2)), "ERANGE", \
        PATH + ".frequency_aware_adagrad.step_counter.tag|2 is not below 2"
    yield "step counter behind a gap", of(t.rate(0.5), counted(1)), "EINVAL", \
        "1 is there, 0 is not"
    for name, levels, code, words in (
            ("without buckets", t.quantization(0, -1.0, 1.0), "ERANGE", ".num_buckets|0 is below 2"),
            ("of one bucket", t.quantization(1, -1.0, 1.0), "ERANGE", ".num_buckets|1 is below 2"),
            ("of buckets below 0", t.quantization(-4, -1.0, 1.0), "ERANGE", ".num_buckets|-4"),
            ("without limits", t.message(27, t.integer(1, 1) + t.integer(3, 4)), "EINVAL",
             ".clipping_limits|lower is missing"),
            ("without lower", t.quantization(4, None, 1.0), "EINVAL",
             ".clipping_limits|lower is missing"),
            ("without upper", t.quantization(4, -1.0, None), "EINVAL",
             ".clipping_limits|upper is missing")):
        yield f"quantization {name}", of(t.rate(0.5), t.SGD, levels), code, \
            PATH + ".simulated_quantization" + words
    yield "quantization of crossed limits", \
        of(t.rate(0.5), t.SGD, t.quantization(4, 1.0, -1.0)), "ERANGE", \
        "table_descriptor[0]|users|quantization|lower 1 is not below upper -1"
    yield "no rate", whole(tables=t.table("a", 8, 2, t.SGD)), "EINVAL", \
        PATH + ".learning_rate|missing"
    yield "rate of neither kind", of(t.message(13, b""), t.SGD), "EINVAL", \
        PATH + ".learning_rate|missing"
    yield "tag below 0", of(t.rate(tag=-1), t.SGD), "ERANGE", PATH + ".learning_rate.dynamic.tag|-1"
    yield "tag of no table", of(t.rate(tag=2), t.SGD), "ERANGE", \
        PATH + ".learning_rate.dynamic.tag|2 is not below"
    yield "gap between tags", t.table("a", 8, 2, t.parameters(t.rate(tag=1), t.SGD)) \
        + t.table("b", 8, 2, SHORT) + t.engine(), "EINVAL", "1 is there, 0 is not"


def tables_refused():
    yield "no rows", whole(tables=t.table("a", 0, 2, SHORT)), "ERANGE", \
        "table_descriptor[0]|vocabulary_size 0"
    yield "rows below 0", whole(tables=t.table("a", -5, 2, SHORT)), "ERANGE", \
        "table_descriptor[0]|vocabulary_size -5"
    yield "no dim", whole(tables=t.table("a", 8, 0, SHORT)), "ERANGE", "table_descriptor[0]|dim 0"
    yield "long name", whole(tables=t.table("a" * 64, 8, 2, SHORT)), "EINVAL", \
        "table_descriptor[0]|longer than 63"
    yield "two tables of one name", whole(tables=ONE + ONE), "EEXIST", \
        "table_descriptor[1]|users|name already"
    yield "setting out of its range", of(t.rate(0.5), t.adam(beta1=1.0)), "ERANGE", \
        "table_descriptor[0]|beta_1 1"
    yield "rate not finite", of(t.rate(float("nan")), t.SGD), "ERANGE", \
        "table_descriptor[0]|learning_rate nan"
    yield "limits crossed", of(t.rate(0.5), t.SGD, t.limits(2, 1.0, -1.0)), "ERANGE", \
        "table_descriptor[0]|clip_weight_min 1"
    yield "clip without accumulation", of(t.rate(0.5), t.SGD, t.limits(7, 0.0),
                                          t.integer(17, t.DISABLED)), "EINVAL", \
        "table_descriptor[0]|gradient clipping"
    yield "hot ids of no such status", of(t.rate(0.5), t.SGD, t.message(18, t.integer(1, 4))), \
        "ERANGE", PATH + ".hot_id_replication_configuration.status|4|enumerators"
    yield "packing of no such status", of(t.rate(0.5), t.SGD, t.integer(28, 3)), "ERANGE", \
        PATH + ".low_dimensional_packing_status|3|enumerators"
    yield "packing of dim 3", whole(tables=t.table("users", 8, 3, t.parameters(
        t.rate(0.5), t.SGD, t.integer(28, 1)))), "EINVAL", \
        "table_descriptor[0]|low_dimensional_packing|dim 3"
    yield "packing of adam", of(t.rate(0.5), t.adam(), t.integer(28, 1)), "EINVAL", \
        "table_descriptor[0]|low_dimensional_packing"


def features_refused():
    yield "no such table", whole(t.feature("a", 1, [4])), "ENOENT", \
        "feature_descriptor[0]|no table 1"
    yield "table below 0", whole(t.feature("a", -1, [4])), "ENOENT", \
        "feature_descriptor[0]|no table -1"
    yield "two features of one name", whole(t.feature("a", 0, [4]) * 2), "EEXIST", \
        "feature_descriptor[1]|name already"
    yield "rank 9", whole(t.feature("a", 0, [1] * 9)), "ERANGE", \
        "feature_descriptor[0].input_shape|9 lengths"
    yield "length 0", whole(t.feature("a", 0, [4, 0])), "ERANGE", \
        "feature_descriptor[0].input_shape[1]|0 is below 1"
    yield "length below 0", whole(t.feature("a", 0, [-4])), "ERANGE", \
        "feature_descriptor[0].input_shape[0]|-4 is below 1"
    yield "positions beyond 64 bits", whole(t.feature("a", 0, [0x7fffffff] * 3)), "ERANGE", \
        "feature_descriptor[0]|64 bits"
    yield "batch below 0", ONE + t.engine(batch=-1), "ERANGE", "batch_size_per_tensor_core|-1"
    yield "features below 0", whole(tables=t.table("a", 8, 2, SHORT, -1)), "ERANGE", \
        "table_descriptor[0].num_features|-1"
    yield "features without a batch", whole(tables=t.table("a", 8, 2, SHORT, 1)), "EINVAL", \
        "batch_size_per_tensor_core|it is 0"
    yield "too many features", t.table("a", 8, 2, SHORT, 4097) + t.engine(batch=1), "ERANGE", \
        "num_features are 4097|4096"
    yield "forms that differ", t.table("a", 8, 2, SHORT, 2) + t.engine(batch=4) \
        + t.feature("f", 0, [4]), "EINVAL", \
        "table_descriptor[0].num_features|8 positions|have 4"
    yield "forms of which one has nothing", ONE + t.engine(batch=4) + t.feature("f", 0, [4]), \
        "EINVAL", "table_descriptor[0].num_features|0 positions|have 4"


def model_refused():
    yield from parameters_refused()
    yield from tables_refused()
    yield from features_refused()


def optimizer_refused():
    for name, one, code, words in (
            ("bytes", b"\0", "EBADMSG", "OptimizationParameters: byte 0|no key"),
            ("nothing", b"", "EINVAL", "names no optimizer"),
            ("no rate", t.SGD, "EINVAL", "learning_rate|missing"),
            ("kind", t.parameters(t.rate(0.5), t.message(24, b"")), "ENOTSUP",
             "user_defined_program"),
            ("rate of ftrl", t.parameters(t.rate(0.0), t.ftrl()), "ERANGE", "learning_rate 0"),
            ("quantization", t.parameters(t.rate(1.0), t.SGD, t.quantization(4, -1.0, 1.0)), "ENOTSUP",
             "simulated_quantization.enabled|table's"),
            ("quantization of one bucket", t.parameters(t.rate(1.0), t.SGD,
                                                        t.quantization(1, -1.0, 1.0)), "ERANGE",
             "simulated_quantization.num_buckets|1"),
            ("step counter", t.parameters(t.rate(1.0), counted(0)), "ENOTSUP",
             "frequency_aware_adagrad.step_counter|embeng_tpu_import()"),
            ("tag", t.parameters(t.rate(tag=-3), t.SGD), "ERANGE", "learning_rate.dynamic.tag|-3"),
            ("field", t.parameters(t.rate(1.0), t.message(6, t.integer(3, 1))), "EBADMSG",
             "adam.beta1|wire type is 0|must be 5")):
        yield name, one, code, words


def hexadecimal(one):
    return f"{one[0].hex()}x{one[1]}" if isinstance(one, tuple) else one.hex()


def lines():
    for name, one in exact():
        yield "exact", name, one.hex()
    for name, one, gives in other():
        yield "other", name, one.hex(), gives.hex()
    for group in (wire_refused, model_refused):
        for name, one, code, words in group():
            yield "refused", name, hexadecimal(one), code, words
    for name, parts in KINDS.items():
        yield "optimizer-exact", name, t.parameters(*parts).hex()
        if not {"packed", "dynamic", "frequency_estimator"} & set(name.split()):
            yield "exact", "optimizer " + name, of(*parts).hex()
    for name, one, code, words in optimizer_refused():
        yield "optimizer-refused", name, one.hex(), code, words


if __name__ == "__main__":
    sys.exit(written.main(__doc__, FILE, HEAD + "".join("\t".join(line) + "\n" for line in lines())))
