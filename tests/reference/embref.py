# SPDX-License-Identifier: MIT
"""Plain f64 reference of an embedding engine: queues, steps, replicas, pipelining.

It follows docs/spec/semantics.md and docs/spec/decisions.md and shares no code with the engine.  A
call that must fail raises RefError and leaves the state as it was.
"""

import copy
import math

from refgradients import table_norms, weight_gradients
from refinput import Lookup
from refmodel import Model
from referror import require


def flatten(nested, shape, where):
    """A nested list of this shape as a flat list of its innermost rows."""
    require(isinstance(nested, list) and len(nested) == shape[0], "EINVAL",
            f"{where}: a gradient of another shape")
    if len(shape) == 1:
        return [[float(x) for x in nested]]
    return [row for part in nested for row in flatten(part, shape[1:], where)]


def nest(rows, shape):
    """The inverse of flatten() for the leading dimensions."""
    if len(shape) <= 1:
        return list(rows)
    part = math.prod(shape[1:])
    return [nest(rows[i * part:(i + 1) * part], shape[1:]) for i in range(shape[0])]


class Batch:
    def __init__(self, lookups, step):
        self.lookups = lookups
        self.step = step          # 0 for inference
        self.out = None           # activations, once read

    def hold(self):
        for lookup in self.lookups.values():
            if lookup.feature.table.combiner == "max":
                lookup.hold()

    def read(self):
        self.hold()
        self.out = {name: nest(lookup.activations(), lookup.shape)
                    for name, lookup in self.lookups.items()}


class Replica:
    def __init__(self):
        self.queue = []           # enqueued, not dequeued, oldest first
        self.training = {}        # step -> Batch, until its update applied
        self.dequeued = []        # training steps without gradients
        self.enqueued = 0         # last training step given
        self.looked_up = 0        # last training step that has read the tables


class Engine:
    def __init__(self, tables, features, replicas=1, pipelining=False, hosts=1,
                 sharding="div", non_finite="error", fixed_shapes=False, **_):
        require(non_finite in ("error", "drop", "allow"), "EINVAL",
                f"there is no policy {non_finite}")
        require(sharding in ("div", "mod"), "EINVAL", f"there is no sharding {sharding}")
        require(hosts >= 1, "ERANGE", f"{hosts} hosts")
        self.specs = copy.deepcopy((tables, features))
        self.non_finite, self.fixed_shapes = non_finite, fixed_shapes
        self.model = Model(tables, features, non_finite == "allow")
        self.replicas = [Replica() for _ in range(replicas)]
        self.pipelining, self.hosts, self.sharding = pipelining, hosts, sharding
        self.applied = 0
        self.updates = 0          # as optimizers count them; a restore sets it
        self.folders = {}         # folders of checkpoints, by name
        self.given = {}           # step -> {replica: (gradients, rates)}
        self.kept = None          # (update that came early, parameters as they were before it)

    def _replica(self, r):
        require(0 <= r < len(self.replicas), "ERANGE", f"no replica {r}")
        return self.replicas[r]

    # -- batches ---------------------------------------------------------

    def _lookups(self, features, training):
        """Every feature's lookup, or what is wrong with one."""
        for name in features:
            require(name in self.model.features, "ENOENT", f"no feature {name}")
        for name in self.model.features:
            require(name in features, "EINVAL", f"feature {name} is missing")
        lookups = {name: Lookup(feature, features[name], not self.fixed_shapes)
                   for name, feature in self.model.features.items()}
        for lookup in lookups.values():
            require(self.non_finite == "allow" or lookup.weights_finite(), "ERANGE",
                    f"feature {lookup.feature.name}: a weight is not finite")
        if training:
            tables = [feature.table for feature in self.model.features.values()]
            require(not tables or any(table.optimizer for table in tables), "EINVAL",
                    f"table {tables[0].name if tables else ''} has no optimizer")
        return lookups

    def _count(self, lookups):
        for lookup in lookups.values():
            if self.fixed_shapes:
                lookup.feature.shape = lookup.shape
            for key in lookup.counts:
                lookup.feature.table.count(key)

    def inference_lookups(self, features):
        """A batch that is looked up by itself, after all steps that are complete."""
        lookups = self._lookups(features, False)
        self._drain()
        return lookups

    def enqueue(self, features, replica=0, training=True):
        rep = self._replica(replica)
        lookups = self._lookups(features, training)
        if not training:
            self._drain()
        self._count(lookups)
        batch = Batch(lookups, rep.enqueued + 1 if training else 0)
        rep.queue.append(batch)
        if training:
            rep.enqueued += 1
            rep.training[batch.step] = batch
            self._progress()
        else:
            batch.read()

    def dequeue(self, replica=0):
        rep = self._replica(replica)
        require(rep.queue, "ETIME", f"replica {replica} has no batch")
        batch = rep.queue[0]
        require(batch.out is not None, "ETIME",
                f"replica {replica}: step {batch.step} waits for an earlier update")
        rep.queue.pop(0)
        if batch.step:
            rep.dequeued.append(batch.step)
        return batch.out

    # -- gradients -------------------------------------------------------

    def answered(self, replica):
        """Lookups of the batch that the replica's next gradients belong to."""
        rep = self.replicas[replica]
        return rep.training[min(rep.dequeued or rep.training)].lookups

    def _gradients(self, batch, gradients):
        for name in gradients:
            require(name in self.model.features, "ENOENT", f"no feature {name}")
        flat = {}
        for name, lookup in batch.lookups.items():
            shape = lookup.shape + [lookup.feature.table.dim]
            g = gradients.get(name)
            if g is None or isinstance(g, dict):
                fill = 0.0 if g is None else float(g["fill"])
                flat[name] = [[fill] * shape[-1]] * math.prod(lookup.shape)
            else:
                flat[name] = flatten(g, shape, f"feature {name}")
        return flat

    def flat_gradients(self, batch, gradients):
        return self._gradients(batch, gradients)

    def _rates(self, step, rates):
        names = self.model.dynamic_rates()
        for name in rates:
            require(name in names, "ENOENT", f"no learning rate {name}")
        for name in names:
            require(name in rates, "EINVAL", f"learning rate {name} has no value")
        for table in self.model.tables.values():
            if table.optimizer:
                table.optimizer.at(rates)
        for other, given in self.given.get(step, {}).items():
            require(given is None or given[1] == rates, "EINVAL",
                    f"learning rates {rates} are not those of replica {other}")
        return rates

    def _check_finite(self, step, flat):
        for name, rows in flat.items():
            if not self.model.features[name].table.trains():
                continue
            for s, row in enumerate(rows):
                for c, g in enumerate(row):
                    require(self.non_finite != "error" or math.isfinite(g), "ERANGE",
                            f"step {step}: feature {name}, sample {s}, column {c}: gradient {g}")

    def _check_sums(self, step, lookups):
        for name, lookup in lookups.items():
            require(lookup.form == "dense", "EINVAL",
                    f"step {step}: feature {name}: a sum belongs to one row")
            table = lookup.feature.table
            h = table.optimizer.h if table.optimizer else {}
            require(h.get("use_gradient_accumulation", True), "EINVAL",
                    f"step {step}: table {table.name} applies each gradient by itself")
            require(not h.get("scale_by_frequency", False), "EINVAL",
                    f"step {step}: table {table.name} divides sums by the number of ids")

    def _part(self, batch, gradients, learning_rates, multiplier, sums=False):
        """A replica's part of a step, once all of it is right; a discarded part is None.

        Sums of a row's gradients add up as gradients do: only their zeros have a sign of their own."""
        step = batch.step
        flat = self._gradients(batch, gradients)
        if sums:
            self._check_sums(step, batch.lookups)
        rates = self._rates(step, learning_rates or {})
        require(math.isfinite(float(multiplier)), "ERANGE", f"multiplier {multiplier}")
        require(all(part is None or part[2] == multiplier
                    for part in self.given.get(step, {}).values()), "EINVAL",
                "another multiplier than the other replicas'")
        if not sums:
            self._check_finite(step, flat)
        return flat, rates, multiplier

    def _oldest(self, replica):
        rep = self._replica(replica)
        require(rep.dequeued, "EPROTO",
                f"replica {replica} has no dequeued training step without gradients")
        return rep, rep.dequeued[0]

    def _give(self, step, replica, part):
        self.given.setdefault(step, {})[replica] = part
        self._progress()

    def apply_gradients(self, gradients, replica=0, learning_rates=None, multiplier=1.0, sums=False):
        rep, step = self._oldest(replica)
        part = self._part(rep.training[step], gradients, learning_rates, multiplier, sums)
        rep.dequeued.pop(0)
        self._give(step, replica, part)

    def discard(self, replica=0):
        rep, step = self._oldest(replica)
        rep.dequeued.pop(0)
        self._give(step, replica, None)

    def update(self, features, gradients, replica=0, learning_rates=None, multiplier=1.0,
               sums=False):
        """Gradients of a batch that is not looked up."""
        rep = self._replica(replica)
        require(all(replica in self.given.get(step, {}) for step in rep.training), "ETIME",
                f"replica {replica} has a batch that waits for gradients")
        batch = Batch(self._lookups(features, True), rep.enqueued + 1)
        part = self._part(batch, gradients, learning_rates, multiplier, sums)
        self._count(batch.lookups)
        rep.enqueued = rep.looked_up = batch.step
        rep.training[batch.step] = batch
        self._give(batch.step, replica, part)

    def told_gradients(self, features, gradients, replica, weighted):
        """Norms by table of what an update would sum, and gradients of the weights of features."""
        self._replica(replica)
        lookups = self._lookups(features, True)
        flat = self._gradients(Batch(lookups, 0), gradients)
        self._drain()
        Batch(lookups, 0).hold()
        return (table_norms(self.model, lookups, flat),
                {name: weight_gradients(lookups[name], flat[name]) for name in weighted})

    # -- steps -----------------------------------------------------------

    def _complete(self, step):
        return len(self.given.get(step, {})) == len(self.replicas)

    def _progress(self):
        """Let every lookup read and every update apply that may, in step order."""
        lag = 2 if self.pipelining else 1
        moved = True
        while moved:
            moved = False
            for rep in self.replicas:
                n = rep.looked_up + 1
                if n <= rep.enqueued and self.applied >= n - lag:
                    self._read(rep.training[n])
                    rep.looked_up = n
                    moved = True
            n = self.applied + 1
            if self._complete(n) and (not self.pipelining or all(
                    rep.looked_up > n for rep in self.replicas)):
                self._update(n)
                moved = True

    def _read(self, batch):
        """With pipelining an update that a drain has applied early is not seen by the next step."""
        if self.kept is None or self.kept[0] != batch.step - 1:
            batch.read()
            return
        now = {name: table.parameters for name, table in self.model.tables.items()}
        for name, parameters in self.kept[1].items():   # those that came later are as they are
            self.model.tables[name].parameters = parameters
        batch.read()
        for name, table in self.model.tables.items():
            table.parameters = now[name]

    def _drain(self):
        while self._complete(self.applied + 1):
            seen = {rep.looked_up for rep in self.replicas}
            require(len(seen) == 1, "ETIME", "a drain while a step is looked up in part")
            if self.pipelining:
                self.kept = (self.applied + 1,
                             {name: copy.deepcopy(table.parameters)
                              for name, table in self.model.tables.items()})
            self._update(self.applied + 1)
            self._progress()

    def _occurrences(self, step):
        """table -> row -> gradients in (replica, feature, sample, position) order."""
        rows = {name: {} for name in self.model.tables}
        for r, rep in enumerate(self.replicas):
            if self.given[step][r] is None:
                continue
            flat = self.given[step][r][0]
            for name, lookup in rep.training[step].lookups.items():
                table = rows[lookup.feature.table.name]
                for row, g in lookup.occurrences(flat[name]):
                    table.setdefault(row, []).append(g)
        return rows

    def _update(self, step):
        parts = [part for part in self.given[step].values() if part is not None]
        for rep in self.replicas:
            if rep.training[step].out is None:      # nobody looked: it is as the update finds it
                rep.training[step].hold()
        if parts:
            self._apply(step, *parts[0][1:])
            self.updates += 1
        for r, rep in enumerate(self.replicas):
            for lookup in rep.training.pop(step).lookups.values():
                if self.given[step][r] is not None:
                    lookup.feature.table.count("ids", lookup.ids)
        del self.given[step]
        self.applied = step

    def _apply(self, step, rates, multiplier):
        for name, rows in self._occurrences(step).items():
            table = self.model.tables[name]
            table.count("unique_ids", len(rows))
            if not table.trains():
                table.idle += 1
                continue
            everywhere = table.optimizer.runs_over_all_rows()
            reached = {row for row, gradients in rows.items()
                       if not all(math.isfinite(x) for g in gradients for x in g)}
            table.count("nonfinite_gradient_rows", len(reached))
            for row in range(table.vocabulary_size) if everywhere else rows:
                if row in reached and self.non_finite == "drop":
                    continue
                slots = {slot: m.row(row) for slot, m in table.slots.items()}
                table.optimizer.touch(rates, table.parameters.row(row), slots,
                                      rows.get(row, []), self.updates - table.idle + 1,
                                      multiplier)

    def settle(self):
        """Apply every update that was handed in."""
        self._drain()

    def freeze(self, table, frozen):
        found = self.model.table(table)
        require(frozen or found.optimizer, "EINVAL", f"table {table} has no optimizer")
        self._drain()
        found.frozen = frozen

    # -- tables ----------------------------------------------------------

    def fill(self, table, initializer, slot="parameters", first=0, count=None):
        found = self.model.table(table)
        matrix, rows = found.matrix(slot), found.vocabulary_size
        count = rows - first if count is None else count
        require(0 <= first <= rows and 0 <= count <= rows - first, "ERANGE",
                f"table {table}: rows {first} to {first + count} of {rows}")
        start = found.starter(slot, initializer, f"table {table}")
        self._drain()
        for r in range(first, first + count):
            matrix.rows[r] = start(r)

    def read_table(self, table, slot="parameters", rows=None):
        found = self.model.table(table)
        matrix = found.matrix(slot)
        self._drain()
        if rows is None:
            rows = range(found.vocabulary_size)
        for r in rows:
            require(0 <= r < found.vocabulary_size, "ERANGE",
                    f"table {table} has no row {r}")
        return [list(matrix.row(r)) for r in rows]

    def read_stats(self, table):
        found = self.model.table(table)
        self._drain()
        stats, found.stats = found.stats, {}
        return {key: stats.get(key, 0) for key in (
            "ids", "unique_ids", "dropped_ids", "clamped_ids", "zeroed_ids",
            "nonfinite_gradient_rows")}

    # -- checkpoints -----------------------------------------------------

    @staticmethod
    def _check_folder(folder):
        require(folder and not folder.startswith("/") and ".." not in folder.split("/"),
                "EINVAL", f"dir {folder} is not inside the folder of the run")

    def save(self, folder):
        self._check_folder(folder)
        self._drain()
        tables = {name: {"parameters": table.parameters, **table.slots}
                  for name, table in self.model.tables.items()}
        idle = {name: table.idle for name, table in self.model.tables.items()}
        self.folders[folder] = copy.deepcopy((tables, self.updates, idle))

    def restore(self, folder):
        self._check_folder(folder)
        require(folder in self.folders, "ENOENT", f"no checkpoint in {folder}")
        tables, updates, idle = copy.deepcopy(self.folders[folder])
        for name, table in self.model.tables.items():
            for slot in table.slots:
                require(slot in tables[name], "ENOENT",
                        f"table {name}: the checkpoint has no slot {slot}")
        self._drain()
        for name, table in self.model.tables.items():
            table.parameters = tables[name]["parameters"]
            table.slots = {slot: tables[name][slot] for slot in table.slots}
            table.idle = idle[name]
        self.kept = None          # the next lookup sees what was restored
        self.updates = updates

    def add_tables(self, tables, features):
        """New tables begin as if they had been frozen until now."""
        self._drain()
        require(not any(rep.training or rep.queue for rep in self.replicas), "EBUSY",
                "a step or a view is under way")
        opened = len(self.model.tables)
        self.model.add(tables, features, self.non_finite == "allow")
        for table in list(self.model.tables.values())[opened:]:
            table.idle = self.updates

    def reopen(self, engine, optimizer=True):
        """The same model, from its start; checkpoints stay."""
        tables, features = copy.deepcopy(self.specs)
        for spec in tables:
            if not optimizer:
                spec.pop("optimizer", None)
                spec.pop("slots", None)
        opened = Engine(tables, features, **engine)
        opened.specs, opened.folders = self.specs, self.folders
        self.__dict__ = opened.__dict__
