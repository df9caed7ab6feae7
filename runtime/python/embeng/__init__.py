# SPDX-License-Identifier: MIT
"""Embedding tables that train and serve on an embedding engine.

>>> import embeng
>>> items = embeng.Table("items", 1000, 16, optimizer=embeng.optimizers.adagrad(0.1))
>>> with embeng.Engine([items], [embeng.Feature("seen", "items")]) as engine:
...     seen = embeng.Ragged([3, 14, 15, 92], lengths=[3, 1])
...     activations = engine.lookup({"seen": seen})["seen"]          # [2, 16] means
...     engine.update({"seen": seen}, {"seen": 2 * activations})

``embeng.torch`` has the modules and optimizers of PyTorch. Tables live in this process' memory, on
the soft device, unless an engine is opened on another one.
"""
from . import initializers, optimizers, schedules
from ._core import Transport, device_info, device_list, version as __version__
from ._engine import Activations, Engine, Feature, Part, Quantization, Table, TableView, plan
from ._errors import (AccessError, BusyError, CheckpointError, CheckpointNotFoundError,
                      DeviceError, EmbengError, InterruptedWaitError, InvalidError, NoMemoryError,
                      NotSupportedError, OutOfRangeError, StepOrderError, UnknownNameError,
                      WaitTimeoutError)
from ._group import Group
from ._inputs import Keyed, Ragged, Sparse
from .initializers import Initializer
from .optimizers import Optimizer
from .schedules import Schedule

__all__ = [
    "AccessError", "Activations", "BusyError", "CheckpointError", "CheckpointNotFoundError",
    "DeviceError", "EmbengError", "Engine", "Feature", "Group", "Initializer",
    "InterruptedWaitError", "InvalidError", "Keyed", "NoMemoryError", "NotSupportedError", "Optimizer",
    "OutOfRangeError", "Part", "Quantization", "Ragged", "Schedule", "Sparse", "StepOrderError",
    "Table", "TableView", "Transport", "UnknownNameError", "WaitTimeoutError", "__version__",
    "device_info", "device_list", "initializers", "optimizers", "plan", "schedules",
]
