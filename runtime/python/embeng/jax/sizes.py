# SPDX-License-Identifier: MIT
"""Sizes of partitioned arrays, under the names of jax-tpu-embedding."""
from typing import Any

import jax

from .preprocessing import BUCKETS, LANES, read_limits


def compute_row_pointers_size_per_device(global_device_count: int, num_sc_per_device: int,
                                         enable_minibatching: bool = False) -> int:
    """Return how many row pointers a device has."""
    total = global_device_count * num_sc_per_device
    return max(total, LANES) * num_sc_per_device * (BUCKETS if enable_minibatching else 1)


def compute_theoretical_max_coo_buffer_size(max_ids_per_partition: int, global_device_count: int,
                                            num_sc_per_device: int,
                                            enable_minibatching: bool = False) -> int:
    """Return the items of a device's buffer that holds every partition within its limit."""
    rounded = -(-max_ids_per_partition // LANES) * LANES
    return (rounded * global_device_count * num_sc_per_device ** 2
            * (BUCKETS if enable_minibatching else 1))


def compute_coo_buffer_size_per_device(feature_specs: Any, global_device_count: int,
                                       num_sc_per_device: int,
                                       enable_minibatching: bool = False) -> dict[str, int]:
    """Return the items of a device's buffer by stack: what is suggested, or the largest."""
    found: dict[str, int] = {}
    for spec in jax.tree.leaves(feature_specs):
        limits = read_limits(spec, num_sc_per_device)
        most = compute_theoretical_max_coo_buffer_size(
            limits.max_ids, global_device_count, num_sc_per_device, enable_minibatching)
        found[spec.table_spec.setting_in_stack.stack_name] = limits.buffer_size or most
    return found
