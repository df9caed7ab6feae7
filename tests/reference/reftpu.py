# SPDX-License-Identifier: MIT
"""The wire form of protobufs, and of the messages that configure TPU embeddings, by the field
numbers of docs/spec/semantics.md 4. Knows nothing of protobuf-c or of libembeng."""
import struct

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
INFERENCE, TRAINING, BACKWARD_PASS_ONLY = 1, 2, 3
ENABLED, DISABLED = 1, 2


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7f:
        out.append(number & 0x7f | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def key(number, wire_type):
    return varint(number << 3 | wire_type)


def integer(number, value, always=False):
    return key(number, VARINT) + varint(value) if value or always else b""


def real(number, value, always=False):
    return key(number, FIXED32) + struct.pack("<f", value) if value or always else b""


def data(number, value, always=False):
    return key(number, BYTES) + varint(len(value)) + value if value or always else b""


def text(number, value):
    return data(number, value.encode())


def message(number, body):
    """A message that is there is written even when it is empty."""
    return data(number, body, True)


def packed(number, values):
    return data(number, b"".join(varint(value) for value in values))


def limits(number, lower=None, upper=None):
    body = b""
    if lower is not None:
        body += message(1, real(1, lower))
    if upper is not None:
        body += message(2, real(1, upper))
    return message(number, body)


def quantization(buckets, lower, upper):
    return message(27, integer(1, 1) + limits(2, lower, upper) + integer(3, buckets))


def rate(constant=None, tag=None):
    if tag is None:
        return message(13, real(1, constant, True))
    return message(13, message(2, integer(1, tag)))


SGD = message(4, b"")
ADAGRAD = message(3, b"")


def adagrad_momentum(momentum=0.0, nesterov=False, exponent=2.0, beta2=1.0, epsilon=1e-10):
    return message(26, real(1, momentum) + integer(2, nesterov) + real(3, exponent)
                   + real(4, beta2) + real(5, epsilon))


def ftrl(l1=0.0, l2=0.0, power=-0.5, multiply=False, beta=0.0, allow_zero=False):
    return message(5, real(1, l1) + real(2, l2) + real(3, power) + integer(6, multiply)
                   + real(7, beta) + integer(8, allow_zero))


def adam(beta1=0.9, beta2=0.999, epsilon=1e-7, non_lazy=False, inside=True):
    return message(6, real(3, beta1) + real(4, beta2) + real(5, epsilon) + integer(8, non_lazy)
                   + integer(10, inside))


def fields_of(body):
    """The top-level fields of a message: number and whole encoding, in their order."""
    at, found = 0, []

    def take():
        nonlocal at
        number = shift = 0
        while True:
            byte = body[at]
            at += 1
            number |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return number
    while at < len(body):
        start, tag = at, take()
        wire_type = tag & 7
        if wire_type == VARINT:
            take()
        elif wire_type == BYTES:
            length = take()
            at += length
        else:
            at += 4 if wire_type == FIXED32 else 8
        found.append((tag >> 3, body[start:at]))
    return found


def parameters(*parts):
    """OptimizationParameters: its fields in the order of their numbers."""
    fields = [field for part in parts for field in fields_of(part)]
    if not any(number == 17 for number, _ in fields):
        fields.append((17, integer(17, ENABLED)))
    return b"".join(encoding for _, encoding in sorted(fields))


def table(name, rows, dim, optimizer=None, features=0):
    return message(1, text(1, name) + integer(2, rows) + integer(3, dim) + integer(4, features)
                   + (b"" if optimizer is None else message(5, optimizer)))


def feature(name, table_id, shape):
    return message(10, text(1, name) + integer(2, table_id) + packed(3, shape))


def engine(mode=TRAINING, batch=0, hosts=1, cores=1, sharding=0, pipelining=False, directory=""):
    return (integer(2, mode) + integer(3, batch) + integer(4, hosts) + integer(5, cores)
            + integer(6, sharding) + integer(7, pipelining) + text(9, directory))
