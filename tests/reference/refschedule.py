# SPDX-License-Identifier: MIT
"""Learning rates by the step in plain f64, from the formulas of the Keras documentation and,
for warm-up, of TensorFlow's model garden (LinearWarmup) and Keras (CosineDecay)."""

import math
import struct

DEFAULTS = {
    "constant": {"learning_rate": 0.1},
    "exponential": {"learning_rate": 0.1, "decay_steps": 100, "decay_rate": 0.96,
                    "staircase": False},
    "inverse_time": {"learning_rate": 0.1, "decay_steps": 100, "decay_rate": 0.5,
                     "staircase": False},
    "polynomial": {"learning_rate": 0.1, "decay_steps": 100, "end_learning_rate": 0.0001,
                   "power": 1.0, "cycle": False},
    "cosine": {"learning_rate": 0.1, "decay_steps": 100, "alpha": 0.0},
    "piecewise": {"boundaries": [10], "values": [1.0, 0.5]},
}
WARMUP = {"warmup_steps": 0, "warmup_learning_rate": 0.0, "starts_after_warmup": False}
WHOLE = ("decay_steps", "warmup_steps")


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def plain(kind, h, step):
    if kind == "constant":
        return h["learning_rate"]
    if kind == "piecewise":
        for boundary, value in zip(h["boundaries"], h["values"]):
            if step <= boundary:
                return value
        return h["values"][-1]
    start, steps = h["learning_rate"], h["decay_steps"]
    if kind in ("exponential", "inverse_time"):
        quotient = step // steps if h["staircase"] else step / steps
        if kind == "exponential":
            return start * math.pow(h["decay_rate"], quotient)
        return start / (1 + h["decay_rate"] * quotient)
    if kind == "polynomial":
        end = h["end_learning_rate"]
        if h["cycle"]:
            steps *= max(-(-step // steps), 1)
        else:
            step = min(step, steps)
        return (start - end) * math.pow(1 - step / steps, h["power"]) + end
    cosine = 0.5 * (1 + math.cos(math.pi * min(step, steps) / steps))
    return start * ((1 - h["alpha"]) * cosine + h["alpha"])


def rate(kind, settings, step):
    """The rate of a step: 0 for the first one. Settings are taken as f32 holds them."""
    h = {**DEFAULTS[kind], **WARMUP, **settings}
    for key, value in h.items():
        if isinstance(value, float):
            h[key] = f32(value)
        elif key == "values":
            h[key] = [f32(x) for x in value]
    warm, skipped = h["warmup_steps"], h["warmup_steps"] if h["starts_after_warmup"] else 0
    if step >= warm:
        return plain(kind, h, step - skipped)
    start = h["warmup_learning_rate"]
    return start + (plain(kind, h, warm - skipped) - start) * step / warm
