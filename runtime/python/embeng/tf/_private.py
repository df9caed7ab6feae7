# SPDX-License-Identifier: MIT
"""Names of TensorFlow that are not public, in one place.

A release of TensorFlow may move them. runtime/python/tests/tf/test_tf_names.py names each with what
is asked of it, so that such a release fails there first.
"""
from tensorflow.compiler.tf2xla.ops.gen_xla_ops import xla_call_module
from tensorflow.core.protobuf.trackable_object_graph_pb2 import TrackableObjectGraph
from tensorflow.python.eager.record import could_possibly_record
from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext
from tensorflow.python.ops.resource_variable_ops import ResourceVariable
from tensorflow.python.saved_model.save_context import in_save_context
from tensorflow.python.tpu.tpu_embedding_base import TPUEmbeddingBase
from tensorflow.python.tpu.tpu_embedding_v2_utils import _Optimizer as OptimizerBase
from tensorflow.python.tpu.tpu_embedding_v3 import PartitionedCsrFormatTensor
from tensorflow.python.trackable.data_structures import NoDependency

__all__ = ["GraphOrParentsInXlaContext", "NoDependency", "OptimizerBase",
           "PartitionedCsrFormatTensor", "ResourceVariable", "TPUEmbeddingBase",
           "TrackableObjectGraph", "could_possibly_record", "in_save_context", "xla_call_module"]
