# SPDX-License-Identifier: MIT
"""The engine for programs of numpy: tables, features, lookups, updates, rows, checkpoints."""
import errno
import io
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from . import _core
from ._errors import InvalidError, UnknownNameError
from ._group import Group, engines
from ._progress import Bar, Progress
from .initializers import Initializer
from .optimizers import Optimizer
from .schedules import Schedule

if TYPE_CHECKING:
    from typing import BinaryIO

    import numpy
    from numpy.typing import NDArray

    FloatArray = NDArray[numpy.float32]


class Quantization(NamedTuple):
    """Levels that lookups see in place of a table's numbers; updates do not.

    Parameters
    ----------
    num_buckets : int
        Levels, from 2.
    lower, upper : float
        The lowest and the highest level.
    """

    num_buckets: int
    lower: float
    upper: float


class Part(NamedTuple):
    """The place of a table in a larger one, whose numbers its rows start with.

    Row i of the table is row ``first_row + i * row_step`` of the whole one, which must have the
    same name, initializer and slot starts; its column 0 is column `first_column` there.

    Parameters
    ----------
    rows : int
        Rows of the whole table.
    first_row : int
        Row of it that row 0 is.
    row_step : int
        Rows of it from one row to the next.
    dim : int
        Columns of the whole table; 0 is as many as the part has.
    first_column : int
        Column of it that column 0 is.
    """

    rows: int
    first_row: int = 0
    row_step: int = 1
    dim: int = 0
    first_column: int = 0


class Table(NamedTuple):
    """One embedding table.

    Parameters
    ----------
    name : str
        Unique in its engine.
    vocabulary_size : int
        Rows.
    dim : int
        Columns.
    combiner : {"mean", "sum", "sqrtn", "max"}
        How the rows of a bag become one.
    optimizer : Optimizer, optional
        Without one the table does not change.
    initializer : Initializer, optional
        How rows start; a truncated normal of deviation ``1 / sqrt(dim)`` by default.
    out_of_range : {"error", "clamp", "drop", "zero"}
        The treatment of ids outside the table.
    slot_starts : mapping of str to Initializer, optional
        How slots start, where that is not what their optimizer says.
    quantization : Quantization, optional
        Levels that lookups see.
    frozen : bool
        Updates leave the table alone until :meth:`Engine.freeze` says otherwise.
    part : Part, optional
        The place of the table in a larger one.
    """

    name: str
    vocabulary_size: int
    dim: int
    combiner: str = "mean"
    optimizer: Optimizer | None = None
    initializer: Initializer | None = None
    out_of_range: str = "error"
    slot_starts: Mapping[str, Initializer] | None = None
    quantization: Quantization | None = None
    frozen: bool = False
    part: Part | None = None


class Feature(NamedTuple):
    """One input, and the table that it is looked up in.

    Parameters
    ----------
    name : str
        Unique in its engine.
    table : str
        Name of a table; several features may share one.
    max_sequence_length : int
        0 combines the rows of a bag; L > 0 keeps its first L rows in order, and fills up with
        zeros.
    output_shape : sequence of int
        Shape of the activations without dim, for programs written for TPU embeddings.
    check_weights : bool
        Refuse weights that are not finite also where the engine allows such numbers.
    max_samples, max_ids : int
        Most of them in a batch, which reserves memory; 0 is any number.
    """

    name: str
    table: str
    max_sequence_length: int = 0
    output_shape: tuple[int, ...] = ()
    check_weights: bool = False
    max_samples: int = 0
    max_ids: int = 0


class Activations(dict[str, "FloatArray"]):
    """Activations of a batch by feature, as :meth:`Engine.dequeue` returns them.

    Attributes
    ----------
    lengths : dict of str to ndarray or None
        Ids of each sample of a sequence feature, at most its ``max_sequence_length``.
    step : int
        Number of the training batch in its replica, from 1; 0 for inference.
    train : bool
        Whether gradients are expected.
    """

    lengths: dict[str, Any]
    step: int
    train: bool


def _check_table(table: Table) -> None:
    if not isinstance(table, Table):
        raise TypeError(f"tables are embeng.Table, not {table!r}")
    for what, kind in (("optimizer", Optimizer), ("initializer", Initializer),
                       ("quantization", Quantization), ("part", Part)):
        given = getattr(table, what)
        if given is not None and not isinstance(given, kind):
            raise TypeError(f"table {table.name}: {what} is {given!r}; give an embeng."
                            f"{kind.__name__}")


def _check_feature(feature: Feature) -> None:
    if not isinstance(feature, Feature):
        raise TypeError(f"features are embeng.Feature, not {feature!r}")


def _describe_table(table: Table, rate_name: str | None) -> dict[str, Any]:
    given = table._asdict()
    given["optimizer"] = table.optimizer and table.optimizer.describe(rate_name)
    given["initializer"] = table.initializer and table.initializer.describe()
    given["quantization"] = table.quantization and table.quantization._asdict()
    given["part"] = table.part and table.part._asdict()
    starts = table.slot_starts
    given["slot_starts"] = starts and {slot: i.describe() for slot, i in starts.items()}
    return given


def _name_schedules(tables: Iterable[Table]) -> dict[Schedule, str]:
    """Names for the rates of schedules: tables whose schedules are equal share one."""
    names: dict[Schedule, str] = {}
    for table in tables:
        rate = table.optimizer.learning_rate if table.optimizer else None
        if isinstance(rate, Schedule):
            names.setdefault(rate, f"schedule_{len(names)}")
    return names


def _build_model(tables: list[Table], features: list[Feature],
                 options: dict[str, Any]) -> _core.Model:
    for table in tables:
        _check_table(table)
    for feature in features:
        _check_feature(feature)
    names = _name_schedules(tables)
    described = []
    for table in tables:
        rate = table.optimizer.learning_rate if table.optimizer else None
        described.append(_describe_table(
            table, names[rate] if isinstance(rate, Schedule) else None))
    schedules = {name: schedule.describe() for schedule, name in names.items()}
    return _core.Model(described, [feature._asdict() for feature in features], options, schedules)


def _name_device(device: str | None, **options: Any) -> str | None:
    """Return the name of a device with its options, as a group takes them."""
    if not options:
        return device
    if device != "soft":
        error = InvalidError(f"with a group, give {' and '.join(options)} within device, as in "
                             "'soft:cores=2'")
        error.code = -errno.EINVAL
        raise error
    return "soft:" + ",".join(f"{key}={value}" for key, value in options.items())


def _default_features(tables: list[Table]) -> list[Feature]:
    for table in tables:
        _check_table(table)
    return [Feature(table.name, table.name) for table in tables]


def plan(tables: Iterable[Table], features: Iterable[Feature] | None = None, *,
         batch_size: int = 1024, ids_per_sample: int = 1, weights: bool = False,
         **options: Any) -> dict[str, Any]:
    """Compute the memory that an engine will need, without opening it.

    Parameters
    ----------
    tables, features
        As for :class:`Engine`.
    batch_size, ids_per_sample : int
        The batches that are supposed.
    weights : bool
        Ids have weights.
    **options
        Other members of ``struct embeng_plan_options``.

    Returns
    -------
    dict
        ``table_bytes``, ``buffer_bytes``, ``engine_bytes``, ``total_bytes``, and ``items``, a list
        of what takes them.
    """
    tables = list(tables)
    chosen = _default_features(tables) if features is None else list(features)
    return _build_model(tables, chosen, {}).plan(
        {"batch_size": batch_size, "ids_per_sample": ids_per_sample, "weights": weights, **options})


class Engine(_core.Engine):
    """An open engine with its tables. A context manager; :meth:`close` frees it.

    Parameters
    ----------
    tables : iterable of Table
        The tables.
    features : iterable of Feature, optional
        The inputs; by default each table has one of its own name.
    device : str or None
        "soft", this process' memory and processors; a device behind the kernel driver where the
        package was built with it; None is what ``EMBENG_DEVICE`` names, or the first device.
    cores : int
        Processors of a soft device; 0 is all that this process may use. No number depends on it.
    memory : int
        Bytes that a soft device may take for tables; 0 is most of what is available.
    variant, prefetch, path : str, optional
        As ``struct embeng_open_options`` has them.
    group : Group, optional
        Hosts over which tables are spread; each opens an engine with the same tables. It makes no
        exchanges of the program's until the engine is closed. "mpi:soft" as `device` opens a group
        of its own.
    replicas, pipelining, step_depth, hosts, sharding, non_finite, fixed_shapes
        As ``struct embeng_engine_config`` has them.

    Raises
    ------
    InvalidError, OutOfRangeError, UnknownNameError
        A table or feature is wrong; the sentence names it.
    NoMemoryError
        The tables do not fit.
    DeviceError, AccessError
        The device is not there, or is not yours.

    Notes
    -----
    Any number of threads may look up at once; updates are applied in the order in which they come,
    one replica by one thread at a time. After a fork every call fails in the child.

    Over a group the numbers are those of one process with as many replicas, to the bit. Each host
    feeds :attr:`replicas`, and makes the same calls in the same order; those that are impossible
    over hosts raise :class:`NotSupportedError`. After a failure of a host each call raises what
    :meth:`Group.exchange` does. A lookup there that ends by its `timeout` or by Ctrl-C is still
    under way: one with the same ids goes on with it, and any other call of all hosts ends it first.
    """

    _tables: list[Table]
    _features: list[Feature]
    _options: dict[str, Any]
    _opening: dict[str, Any]

    def __new__(cls, tables: Iterable[Table], features: Iterable[Feature] | None = None, *,
                device: str | None = "soft", cores: int = 0, memory: int = 0,
                variant: str | None = None, prefetch: str | None = None, path: str | None = None,
                group: Group | None = None, replicas: int = 1, pipelining: bool = False,
                step_depth: int = 0, hosts: int = 1, sharding: str = "div",
                non_finite: str = "error", fixed_shapes: bool = False) -> Self:
        tables = list(tables)
        chosen = _default_features(tables) if features is None else list(features)
        options = {"replicas": replicas, "pipelining": pipelining, "step_depth": step_depth,
                   "hosts": hosts, "sharding": sharding, "non_finite": non_finite,
                   "fixed_shapes": fixed_shapes}
        opening: dict[str, Any] = {"device": device, "cores": cores, "memory": memory,
                                   "variant": variant, "prefetch": prefetch, "path": path}
        given = opening if group is None else {
            "device": _name_device(device, **{key: value for key, value in opening.items()
                                              if key != "device" and value}), "group": group}
        self = super().__new__(cls, _build_model(tables, chosen, options), **given)
        if self.info()["hosts"] > 1:
            engines.add(self)
        self._tables, self._features = tables, chosen
        self._options, self._opening = options, opening
        return self

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(f"{t.name} {t.vocabulary_size}x{t.dim}" for t in self._tables)
        return f"<embeng.Engine{' (closed)' if self.closed else ''}: {names}>"

    # -- tables

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables, in their order."""
        return tuple(self._tables)

    @property
    def features(self) -> tuple[Feature, ...]:
        """The features, in their order."""
        return tuple(self._features)

    def __getitem__(self, table: str) -> "TableView":
        """Return the view of a table by its name."""
        for index, known in enumerate(self._tables):
            if known.name == table:
                return TableView(self, known, index)
        raise _no_table(table, [known.name for known in self._tables])

    def __iter__(self) -> Iterator["TableView"]:
        return (TableView(self, table, index) for index, table in enumerate(self._tables))

    def __len__(self) -> int:
        return len(self._tables)

    def add(self, tables: Iterable[Table] = (), features: Iterable[Feature] = ()) -> None:
        """Add tables and features while the engine is open; what it has stays as it is.

        Parameters
        ----------
        tables : iterable of Table
            New tables, which start as those of an engine that is opened.
        features : iterable of Feature
            New features, of new tables or old ones.
        """
        all_tables = [*self._tables, *tables]
        all_features = [*self._features, *features]
        self.add_tables(_build_model(all_tables, all_features, self._options))
        self._tables, self._features = all_tables, all_features

    # -- steps

    @property
    def replicas(self) -> range:
        """The replicas that this process feeds: all but over a group, whose hosts share them."""
        info = self.info()
        first: int = info["first_replica"]
        return range(first, first + info["replica_count"])

    @property
    def step(self) -> int:
        """How many updates the optimizers have counted. May be set."""
        return self.get_step()

    @step.setter
    def step(self, number: int) -> None:
        self.set_step(number)

    def dequeue(self, replica: int = 0, timeout: float | None = None) -> Activations:
        """Return the activations of the oldest enqueued batch, as copies.

        Raises
        ------
        StepOrderError
            Nothing is enqueued, or this thread has the view that is waited for.
        WaitTimeoutError
            `timeout` seconds passed; the sentence names what is missing.
        """
        arrays, lengths, step, train = super().dequeue(replica, timeout)
        activations = Activations(arrays)
        activations.lengths, activations.step, activations.train = lengths, step, train
        return activations

    # -- checkpoints

    def save(self, target: "str | PathLike[str] | BinaryIO", *, progress: Progress = None,
             delta: bool = False, keep: int = 0, program_state: str | None = None,
             shard_bytes: int = 0, not_finite: bool = False) -> dict[str, Any]:
        """Save tables, slots and the step count.

        Parameters
        ----------
        target : path or file object
            A folder, which is committed by one rename, or a file that is open for writing bytes.
        progress : callable or bool, optional
            Told (what, done, total) in bytes; True or False shows a bar or none. By default there
            is one on a terminal.
        delta : bool
            Write only rows that differ from the checkpoint in the folder.
        keep : int
            Checkpoints that stay in the folder; 0 is 2.
        program_state : str, optional
            Text that the program wants back with exactly these tables.
        shard_bytes : int
            Most bytes of rows in one file; 0 is 1 GiB.
        not_finite : bool
            Save infinities and NaN, too.

        Returns
        -------
        dict
            ``rows``, ``bytes``, ``delta``, ``base_step``, ``why_full``.
        """
        with Bar(progress) as tell:
            return self._save(target, tell, shard_bytes, program_state, not_finite, delta, keep)

    def restore(self, source: "str | PathLike[str] | BinaryIO", *, progress: Progress = None,
                names: Mapping[str, str | None] | None = None, step: int | None = None,
                missing_tables: bool = False, missing_slots: bool = False,
                other_shapes: bool = False, other_optimizer: bool = False) -> dict[str, Any]:
        """Restore tables, slots and the step count; on an error they are as they were.

        Parameters
        ----------
        source : path or file object
            A checkpoint's folder, or a file that is open for reading bytes.
        progress : callable or bool, optional
            As for :meth:`save`.
        names : mapping of str to str or None, optional
            From tables of the engine to tables of the checkpoint; None leaves a table as it is.
        step : int, optional
            The newest checkpoint of this step.
        missing_tables, missing_slots, other_shapes, other_optimizer : bool
            Differences that are allowed, as ``EMBENG_RESTORE_*`` are.

        Returns
        -------
        dict
            Counts of what was restored and left, as ``struct embeng_restore_report`` has them.
        """
        with Bar(progress) as tell:
            return self._restore(source, tell, None if names is None else dict(names), step,
                                   missing_tables, missing_slots, other_shapes, other_optimizer)

    # -- copies

    def __reduce__(self) -> Any:
        stream = io.BytesIO()
        self.flush()
        self.save(stream, progress=False, not_finite=True)
        arguments = {**self._options, **self._opening}
        return _rebuild, (self._tables, self._features, arguments, stream.getvalue())

    def __deepcopy__(self, memo: dict[int, Any]) -> "Engine":
        rebuild, arguments = self.__reduce__()
        copy: Engine = rebuild(*arguments)
        memo[id(self)] = copy
        return copy


def _rebuild(tables: list[Table], features: list[Feature], arguments: dict[str, Any],
             content: bytes) -> Engine:
    engine = Engine(tables, features, **arguments)
    engine.restore(io.BytesIO(content), progress=False)
    return engine


class TableView:
    """The rows and slots of one table of an engine.

    ``view[3]``, ``view[2:5]`` and ``view[[7, 1]]`` are copies of rows, and assigning to them writes
    rows. :meth:`numpy` is the memory itself, on a soft device.
    """

    def __init__(self, engine: Engine, table: Table, index: int):
        self._engine = engine
        self._table = table
        self._index = index

    @property
    def name(self) -> str:
        """Name of the table."""
        return self._table.name

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._table.vocabulary_size, self._table.dim

    @property
    def dtype(self) -> "numpy.dtype[numpy.float32]":
        """Always float32."""
        import numpy

        return numpy.dtype(numpy.float32)

    def _widths(self) -> dict[str, int]:
        widths: dict[str, int] = self._engine.describe()["tables"][self._index]["slots"]
        return widths

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of the slots of its optimizer."""
        return tuple(self._widths())

    @property
    def frozen(self) -> bool:
        """Whether updates leave the table alone. May be set."""
        return self._engine.frozen(self.name)

    @frozen.setter
    def frozen(self, frozen: bool) -> None:
        self._engine.freeze(self.name, frozen)

    def _width(self, slot: str | None) -> int:
        if slot is None or slot == "parameters":
            return self.shape[1]
        widths = self._widths()
        if slot not in widths:
            raise _no_slot(self.name, slot, list(widths))
        return widths[slot]

    def read(self, rows: Any = None, *, slot: str | None = None,
             out: "FloatArray | None" = None) -> "FloatArray":
        """Copy rows.

        Parameters
        ----------
        rows : array_like of int, optional
            Their numbers, in one dimension; all rows by default.
        slot : str, optional
            A slot's name; the parameters by default.
        out : ndarray of float32, optional
            Where they go, ``[rows, width]``.

        Returns
        -------
        ndarray of float32
            ``[rows, width]``; width is dim, or 1 for a slot of one number a row.
        """
        import numpy

        width = self._width(slot)
        count = self.shape[0] if rows is None else len(rows)
        if out is None:
            out = numpy.empty((count, width), numpy.float32)
        elif out.shape != (count, width):
            raise ValueError(f"out has the shape {out.shape}, the rows are {(count, width)}")
        self._engine.rows_read(self.name, out, rows, slot)
        return out

    def write(self, values: Any, rows: Any = None, *, slot: str | None = None) -> None:
        """Write rows.

        Parameters
        ----------
        values : array_like of float32
            ``[rows, width]``.
        rows : array_like of int, optional
            Their numbers; 0, 1, ... by default. The last values stay of a row that comes twice.
        slot : str, optional
            A slot's name; the parameters by default.
        """
        self._engine.rows_write(self.name, values, rows, slot)

    def fill(self, initializer: Initializer, *, slot: str | None = None, first: int = 0,
             count: int | None = None) -> None:
        """Start `count` rows from `first` on again, as an initializer says."""
        self._engine.rows_fill(self.name, initializer.describe(), slot, first,
                               -1 if count is None else count)

    def numpy(self, slot: str | None = None) -> "FloatArray":
        """Return the rows' own memory as an array, on a soft device.

        Updates change it at any time, and it may be written to between them. After
        :meth:`Engine.flush` it has all updates that were handed in. The array keeps the memory: it
        may outlive the engine.

        Raises
        ------
        NotSupportedError
            The device has memory of its own.
        """
        import numpy

        return numpy.asarray(self._engine.table_map(self.name, slot))

    def stats(self, clear: bool = False) -> dict[str, Any]:
        """Return the table's counts since they were cleared, hottest rows included."""
        return self._engine.stats(self.name, clear)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("the rows are copied; numpy() is the memory itself")
        found = self.read()
        return found if dtype is None else found.astype(dtype, copy=False)

    def _numbers(self, key: Any) -> Any:
        import numpy

        if isinstance(key, slice):
            return numpy.arange(*key.indices(len(self)))
        if key is None or isinstance(key, tuple):
            raise TypeError(f"table {self.name}: {key!r} is no row; give a number, a slice, or an "
                            "array of numbers")
        numbers = numpy.asarray(key)
        if numbers.dtype == bool:
            if numbers.shape != (len(self),):
                raise IndexError(f"table {self.name}: the mask has the shape {numbers.shape}, for "
                                 f"{len(self)} rows")
            return numpy.flatnonzero(numbers)
        if numbers.size == 0:
            return numbers.astype(numpy.int64)
        if numbers.dtype.kind != "i":
            return numbers  # unsigned, or not rows at all, which the engine says
        from_end = (numbers < 0) & (numbers >= -len(self))
        return numpy.where(from_end, numbers + len(self), numbers)

    def __getitem__(self, key: Any) -> "FloatArray":
        numbers = self._numbers(key)
        found = self.read(numbers.reshape(-1))
        return found.reshape(*numbers.shape, self.shape[1])

    def __setitem__(self, key: Any, values: Any) -> None:
        import numpy

        numbers = self._numbers(key)
        shape = (*numbers.shape, self.shape[1])
        spread = numpy.broadcast_to(numpy.asarray(values, numpy.float32), shape)
        self.write(spread.reshape(-1, self.shape[1]), numbers.reshape(-1))

    def __repr__(self) -> str:
        rows, dim = self.shape
        return f"<embeng.TableView {self.name}: {rows} rows of {dim}>"


def _unknown(text: str) -> UnknownNameError:
    error = UnknownNameError(text)
    error.code = -errno.ENOENT
    return error


def _no_table(name: str, known: list[str]) -> UnknownNameError:
    return _unknown(f"there is no table {name!r}; the tables are {', '.join(known)}")


def _no_slot(table: str, slot: str, known: list[str]) -> UnknownNameError:
    return _unknown(f"table {table} has no slot {slot!r}; it has {', '.join(known) or 'none'}")
