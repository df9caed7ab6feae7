# SPDX-License-Identifier: MIT
"""The system that stands for TPUs: logical processors, and the tables that are loaded.

There is one for a process, as there is one TPU system for a TensorFlow program. Initializing it
forgets the tables of before, as it does on a TPU.
"""
import os
from typing import TYPE_CHECKING, Any

import numpy
import tensorflow as tf

from .._errors import InvalidError, StepOrderError

if TYPE_CHECKING:
    from ._session import Session

REPLICAS_VARIABLE = "EMBENG_TF_REPLICAS"


class System:
    """Logical processors and the session of the TPUEmbedding that was built last.

    Attributes
    ----------
    replicas : int
        Logical processors that stand for TPU cores.
    session : Session or None
        The tables that are loaded.
    """

    def __init__(self) -> None:
        self.replicas = 0
        self.session: Session | None = None

    def start(self, replicas: int) -> None:
        """Forget the tables, and have as many logical processors as replicas."""
        if self.session is not None:
            self.session.close()
            self.session = None
        _make_processors(replicas)
        self.replicas = replicas

    @property
    def devices(self) -> list[str]:
        """Names of the logical processors."""
        if not self.replicas:
            self.start(_default_replicas())
        return [f"/cpu:{number}" for number in range(self.replicas)]


system = System()


def _default_replicas() -> int:
    given = os.environ.get(REPLICAS_VARIABLE)
    if given:
        if not given.isdigit() or int(given) < 1:
            raise InvalidError(f"{REPLICAS_VARIABLE} is {given!r}; give a number from 1")
        return int(given)
    known = tf.config.get_logical_device_configuration(_processor())
    return len(known) if known else 1


def _processor() -> Any:
    return tf.config.list_physical_devices("CPU")[0]


def _make_processors(count: int) -> None:
    known = tf.config.get_logical_device_configuration(_processor())
    if count <= (len(known) if known else 1):
        return
    try:
        tf.config.set_logical_device_configuration(
            _processor(), [tf.config.LogicalDeviceConfiguration() for _ in range(count)])
    except RuntimeError as error:
        raise StepOrderError(
            f"TensorFlow has already started with {len(known) if known else 1} logical processors, "
            f"and cannot have {count} now; make the TPUClusterResolver before the first tensor of "
            "the program") from error


_Resolver: Any = tf.distribute.cluster_resolver.ClusterResolver


class TPUClusterResolver(_Resolver):
    """Stands for the TPUs of a cluster: logical processors of this machine.

    Parameters
    ----------
    tpu : str, optional
        Ignored, as `zone`, `project` and other arguments of TensorFlow's class are.
    replicas : int, optional
        Logical processors, which is ``num_replicas_in_sync`` of the strategy. By default it is what
        the variable ``EMBENG_TF_REPLICAS`` of the environment says; without it, the number that the
        program configured; else 1.

    Raises
    ------
    StepOrderError
        TensorFlow runs already with fewer of them.
    """

    def __init__(self, tpu: str | None = None, zone: str | None = None,
                 project: str | None = None, *unused: Any, replicas: int | None = None,
                 **ignored: Any):
        self._tpu = tpu
        self.replicas = _default_replicas() if replicas is None else replicas
        if self.replicas < 1:
            raise InvalidError(f"replicas is {replicas}; give a number from 1")
        _make_processors(self.replicas)
        self.task_type = "worker"
        self.task_id = 0

    @staticmethod
    def connect(tpu: str | None = None, *unused: Any, **ignored: Any) -> "TPUClusterResolver":
        """Make a resolver, and initialize the system."""
        resolver = TPUClusterResolver(tpu)
        initialize_tpu_system(resolver)
        return resolver

    def cluster_spec(self) -> Any:
        """Return a cluster without jobs: everything is in this process."""
        return tf.train.ClusterSpec({})

    def master(self, task_type: Any = None, task_id: Any = None, rpc_layer: Any = None) -> str:
        """Return the empty address, which is this process."""
        return ""

    def get_master(self) -> str:
        """Return the empty address, which is this process."""
        return self.master()

    def get_job_name(self) -> str:
        """Return the name of the only job."""
        return "localhost"

    def num_accelerators(self, task_type: Any = None, task_id: Any = None,
                         config_proto: Any = None) -> dict[str, int]:
        """Return how many there are by kind, with the kind that the program expects."""
        return {"TPU": self.replicas}


def initialize_tpu_system(cluster_resolver: TPUClusterResolver | None = None) -> Any:
    """Start anew: tables that were loaded are gone, and another TPUEmbedding may be built.

    Parameters
    ----------
    cluster_resolver : TPUClusterResolver, optional
        Its number of replicas counts from now on.

    Returns
    -------
    tf.tpu.experimental.Topology
        A line of as many cores as there are replicas.
    """
    replicas = getattr(cluster_resolver, "replicas", None) or _default_replicas()
    system.start(replicas)
    places = numpy.zeros((1, replicas, 4), numpy.int32)
    places[0, :, 0] = numpy.arange(replicas)
    return tf.tpu.experimental.Topology(mesh_shape=numpy.array([replicas, 1, 1, 1], numpy.int32),
                                        device_coordinates=places)


def shutdown_tpu_system(cluster_resolver: TPUClusterResolver | None = None) -> None:
    """Forget the tables that are loaded."""
    system.start(system.replicas or _default_replicas())
