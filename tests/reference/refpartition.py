# SPDX-License-Identifier: MIT
"""Partitioned CSR of one device, item by item.

The rules are docs/spec/semantics.md 7.3 to 7.5 and docs/spec/decisions.md 13. Written from the
text: ids are entries of a dictionary by place, and buffers are lists.
"""

from refhighway import column_hash
from refinput import FORMS, scale_of
from referror import require

BUCKETS = 64
PADDING = {"tf": {"id": 2**31 - 1, "gain": 2.0**31}, "jax": {"id": 2**31 - 1, "gain": "nan"}}


def up(n, to):
    return -(-n // to) * to


class Options:
    """The keys of a partition step, checked."""

    def __init__(self, spec):
        self.flavour = spec["flavour"]
        self.cores = spec["sparse_cores"]
        self.each = spec["cores_per_device"]
        self.device = spec.get("device", 0)
        self.max_ids = spec["max_ids_per_partition"]
        self.max_unique = spec["max_unique_ids_per_partition"]
        self.minibatching = spec.get("minibatching", False)
        self.bucket = spec.get("bucket", "div" if self.flavour == "tf" else "hash")
        self.dropping = spec.get("allow_id_dropping", False)
        self.buffer = spec.get("suggested_buffer_size")
        rotation = spec.get("rotation")
        self.rotation = self.each if rotation is None else rotation
        self.jax = self.flavour == "jax"
        self._check()

    def _check(self):
        require(self.flavour in PADDING, "EINVAL", f"there is no flavour {self.flavour}")
        require(self.bucket in ("div", "mod", "hash"), "EINVAL",
                f"there is no bucket {self.bucket}")
        for key, value in (("sparse_cores", self.cores), ("cores_per_device", self.each),
                           ("max_ids_per_partition", self.max_ids),
                           ("max_unique_ids_per_partition", self.max_unique)):
            require(value >= 1, "ERANGE", f"{key} {value} is below 1")
        require(self.cores % self.each == 0, "EINVAL",
                f"{self.cores} sparse_cores are no multiple of {self.each} cores_per_device")
        require(not self.jax or self.cores & (self.cores - 1) == 0, "EINVAL",
                f"{self.cores} sparse_cores are no power of two")
        require(0 <= self.device < self.cores // self.each, "ERANGE",
                f"there is no device {self.device}")
        require(self.jax or not self.buffer or self.buffer % 8 == 0, "EINVAL",
                f"buffer_size {self.buffer} is no multiple of 8")
        require(self.rotation >= 0, "ERANGE", f"rotation {self.rotation} is below 0")


def stack(model, features, o):
    """Rotation and column offset of each table that is used, and the rows of all."""
    used = [f.table for f in model.features.values() if f.name in features]
    places, columns = {}, 0
    for table in model.tables.values():
        if table in used:
            places[table.name] = (len(places) * o.rotation % o.cores, columns)
            columns += up(table.vocabulary_size, 8 * o.cores)
    return places, columns


def bags_of(feature, spec, o):
    """The samples of a feature, dealt to the cores of the device."""
    form = next(form for form in FORMS if form in spec)
    require(form == "dense" or not feature.max_sequence_length, "EINVAL",
            f"feature {feature.name}: a sequence has no place in a partition")
    bags, _ = FORMS[form](feature, spec)
    require(len(bags) % o.each == 0, "EINVAL", f"feature {feature.name}: {len(bags)} samples "
            f"are no multiple of {o.each} cores_per_device")
    for sample, bag in enumerate(bags):
        for i, _ in bag:
            require(0 <= i < feature.table.vocabulary_size, "ERANGE",
                    f"feature {feature.name}, sample {sample}: id {i} is not in table "
                    f"{feature.table.name}")
    part = len(bags) // o.each
    return [bags[c * part:(c + 1) * part] for c in range(o.each)], form == "dense"


def collect(model, features, o):
    """Returns {(partition, token, row): [gain, ids]} for each core, and the rows of the stack."""
    places, columns = stack(model, features, o)
    cores, first = [{} for _ in range(o.each)], 0
    for feature in model.features.values():
        if feature.name not in features:
            continue
        dealt, dense = bags_of(feature, features[feature.name], o)
        shift, offset = places[feature.table.name]
        for core, bags in zip(cores, dealt):
            for row, bag in enumerate(bags):
                scale = scale_of("sum" if dense else feature.table.combiner,
                                 [w for _, w in bag])
                for i, weight in bag:
                    column = (i + shift) % o.cores + i // o.cores * o.cores + offset
                    key = (column % o.cores, column // o.cores, first + row)
                    item = core.setdefault(key, [0.0, 0])
                    item[0] += weight * scale
                    item[1] += 1
        first += len(dealt[0])
    return cores, columns


def bucket_of(column, columns, o):
    if o.bucket == "hash":
        return column_hash(column) % BUCKETS
    if o.bucket == "mod":
        return column % BUCKETS
    return min(column // -(-columns // BUCKETS), BUCKETS - 1)


class Run:
    """The items of one bucket in one partition of one core: (token, row, gain, ids)."""

    def __init__(self):
        self.items = []
        self.dropped = 0

    def tokens(self):
        return len({item[0] for item in self.items})

    def cut(self, o):
        seen = set()
        kept = []
        for item in self.items:
            if len(kept) == o.max_ids or len(seen | {item[0]}) > o.max_unique:
                break
            seen.add(item[0])
            kept.append(item)
        lost = self.items[len(kept):]
        self.dropped = sum(item[3] for item in lost) if o.jax else len(lost)
        self.items = kept


def runs_of(core, columns, o, buckets):
    """[partition][bucket] of a core."""
    runs = [[Run() for _ in range(buckets)] for _ in range(o.cores)]
    for (partition, token, row), (gain, ids) in sorted(core.items()):
        bucket = bucket_of(token * o.cores + partition, columns, o) if buckets > 1 else 0
        runs[partition][bucket].items.append((token, row, gain, ids))
    return runs


def halves(counts, fits, first, last):
    """TF: parts what does not fit in the middle, from the top."""
    if last - first == 1 or fits(counts[first:last]):
        return set()
    middle = (first + last) // 2
    return {middle} | halves(counts, fits, first, middle) | halves(counts, fits, middle, last)


def joined(counts, fits, cuts):
    """TF: then takes piece after piece while they fit together."""
    kept, start, edges = set(), 0, sorted(cuts) + [BUCKETS]
    before = 0
    for edge in edges:
        if not fits(counts[start:edge]):
            kept.add(before)
            start = before
        before = edge
    return kept


def pairs(counts, limit, first=0, last=BUCKETS):
    """JAX: (size, cuts) of a subtree; a parted one is as large as its larger half."""
    if last - first == 1:
        return counts[first], set()
    middle = (first + last) // 2
    left, cuts_left = pairs(counts, limit, first, middle)
    right, cuts_right = pairs(counts, limit, middle, last)
    cuts = cuts_left | cuts_right
    if left + right > limit:
        return max(left, right), cuts | {middle}
    return left + right, cuts


def cuts_jax(counted, o):
    cuts = set()
    for counts in counted:
        cuts |= pairs([ids for ids, _ in counts], o.max_ids)[1]
        cuts |= pairs([unique for _, unique in counts], o.max_unique)[1]
    return cuts


def cuts_tf(counted, o):
    def fits(part):
        return (sum(ids for ids, _ in part) <= o.max_ids
                and sum(unique for _, unique in part) <= o.max_unique)

    pieces, cuts = set(), set()
    for counts in counted:
        pieces |= halves(counts, fits, 0, BUCKETS)
        cuts |= joined(counts, fits, pieces)
    return cuts


def counted_of(cores):
    return [[(len(run.items), run.tokens()) for run in runs] for core in cores for runs in core]


def apply_limits(cores, o):
    for c, core in enumerate(cores):
        for p, runs in enumerate(core):
            for run in runs:
                if len(run.items) <= o.max_ids and run.tokens() <= o.max_unique:
                    continue
                require(o.dropping, "ERANGE", f"too many ids: core {c}, partition {p} has "
                        f"{len(run.items)} ids, {run.tokens()} unique; the limit is "
                        f"{o.max_ids}, {o.max_unique}")
                run.cut(o)


def arrange(cores, columns, o):
    """Runs, and the buckets of each minibatch."""
    whole = [runs_of(core, columns, o, 1) for core in cores]
    over = any(ids > o.max_ids or unique > o.max_unique
               for counts in counted_of(whole) for ids, unique in counts)
    if not (over and o.minibatching):
        apply_limits(whole, o)
        return whole, [range(1)]
    runs = [runs_of(core, columns, o, BUCKETS) for core in cores]
    counted = counted_of(runs)
    apply_limits(runs, o)
    cuts = cuts_jax(counted, o) if o.jax else cuts_tf(counted_of(runs), o)
    edges = [0] + sorted(cuts) + [BUCKETS]
    return runs, [range(a, b) for a, b in zip(edges, edges[1:])]


class Buffer:
    """The device's buffer; writes beyond a limit are lost."""

    def __init__(self, o):
        self.o = o
        self.at = self.base = 0
        self.limit = None
        self.lost = 0
        self.padded = False

    def begin(self, base, limit):
        self.base = self.at = base if limit is None else min(base, limit)
        self.limit = limit

    def put(self, items, token):
        out = []
        for item in items:
            if self.limit is not None and self.at >= self.limit:
                require(self.o.dropping, "ERANGE", f"the buffer of {self.limit} is too small")
                self.lost += 1
                continue
            out.append([self.at - self.base, item[1], token(item), item[2]])
            self.at += 1
        return out

    def align(self):
        self.padded |= self.at % 8 != 0
        self.at = up(self.at, 8)


def theoretical(o):
    return up(o.max_ids, 8) * o.each * o.cores * (BUCKETS if o.minibatching else 1)


def lay_out(cores, minibatches, o):
    size = o.buffer
    if o.jax:
        size = up(o.buffer, 8 * o.each) if o.buffer else theoretical(o)
        require(size <= theoretical(o), "ERANGE",
                f"a buffer of {size} is larger than {theoretical(o)}")
    own = size // o.each if o.jax and not o.minibatching else None
    buffer, pointers, items = Buffer(o), [], []
    for c, core in enumerate(cores):
        if own:
            buffer.begin(c * own, (c + 1) * own)
        else:
            buffer.begin(buffer.at, size)
        origin, mine = (buffer.base if own else 0), []
        for buckets in minibatches:
            line = []
            for runs in core:
                for b in buckets:
                    mine += buffer.put(runs[b].items, lambda item: item[0])
                line.append(buffer.at - origin)
                buffer.align()
            line += [buffer.at - origin] * (up(o.cores, 8) - o.cores)
            pointers.append(line)
        items.append(mine)
    return pointers, items, buffer


def partition(model, features, spec):
    """Returns all that a partition step must give."""
    for name in features:
        require(name in model.features, "ENOENT", f"there is no feature {name}")
    for table in model.tables.values():
        require(table.combiner != "max", "ENOTSUP", f"table {table.name}: the combiner max")
    o = Options(spec)
    cores, columns = collect(model, features, o)
    require(columns <= 2**31, "ERANGE", f"a stack of {columns} rows")
    whole = [runs_of(core, columns, o, 1) for core in cores]
    runs, minibatches = arrange(cores, columns, o)
    pointers, items, buffer = lay_out(runs, minibatches, o)
    dropped = sum(run.dropped for core in runs for part in core for run in part)
    out = {
        "row_pointers": pointers,
        "items": items,
        "dropped_ids": dropped + buffer.lost,
        "max_ids": [max(len(core[p][0].items) for core in whole) for p in range(o.cores)],
        "max_unique_ids": [max(core[p][0].tokens() for core in whole) for p in range(o.cores)],
        "required_buffer": [sum(up(len(runs[0].items), 8) for runs in core) for core in whole],
        "minibatches": len(minibatches),
    }
    if buffer.padded:
        out["padding"] = PADDING[o.flavour]
    return out
