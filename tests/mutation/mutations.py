# SPDX-License-Identifier: MIT
"""The mistakes that mutate.py makes. Each is one that somebody could make."""
from typing import NamedTuple


class Mutation(NamedTuple):
    name: str
    file: str
    old: str
    new: str
    units: tuple = None  # tests that are to see it, before the vectors; None: the engine's


LOOKUP = "engine/kernels/body_lookup.h"
QUANTIZE = "engine/kernels/body_quantize.h"
SCALE = "engine/kernels/scale.h"
GRADIENT = "engine/kernels/body_gradient.h"
UPDATE = "engine/kernels/body_update.h"
ROWS_APART = "engine/kernels/body_rows.h"
OPTIMIZERS = "engine/kernels/optimizers.h"
PROTO = "engine/kernels/optimizers_proto.h"
STEP = "engine/step.c"
IDS = "engine/ids.c"
SERVING = "runtime/src/serving.h"
SERVING_SUM = "runtime/src/serving_sum.c"
ROWS = "engine/apply_rows.c"
STACKS = "engine/stacks_take.c"

MUTATIONS = [
    Mutation("runs of 255 instead of 256", "engine/kernels/kernels.h",
             "#define KERNEL_RUN 256u", "#define KERNEL_RUN 255u"),
    Mutation("runs added from the right", GRADIENT,
             "\t\t\tadd_row(target, run, u->dim);\n\t\t\tcontinue;",
             "\t\t\tadd_row(run, target, u->dim);\n"
             "\t\t\tfor (u32 c = 0; c < u->dim; c++)\n"
             "\t\t\t\ttarget[c] = done + length < n ? target[c] : run[c];\n"
             "\t\t\tcontinue;"),
    Mutation("missing scale in the lookup", LOOKUP,
             "\t\tif (w->scales)\n\t\t\tacc[i] *= w->scales[sample];\n", ""),
    Mutation("missing scale in the gradient", LOOKUP,
             "all * w->weights[k] : all;", "w->weights[k] : all;"),
    Mutation("sqrtn without the root", SCALE,
             "KERNEL_SQRTN ? root64(sum) : sum;", "KERNEL_SQRTN ? sum : sum;"),
    Mutation("division by a zero denominator", SCALE,
             "denominator == 0.0 ? 0.0f : (float)(1.0 / denominator)",
             "(float)(1.0 / denominator)"),
    Mutation("weight left out of the lookup", LOOKUP,
             "form.weighted ? vec_fma(vec_all(w->weights[k]), x, acc[i]) : acc[i] + x",
             "acc[i] + x"),
    Mutation("quantization rounds down", QUANTIZE, "/ step + vec_all(0.5f));", "/ step);"),
    Mutation("quantization forgets the limits", QUANTIZE,
             "\tx = vec_clip(x, q->lower, q->upper);\n", ""),
    Mutation("rows that are not there quantized", LOOKUP,
             "form.quantized && !lookup_is_zero(w, k, form.narrow)", "form.quantized"),
    Mutation("last duplicate lost", GRADIENT,
             "for (u64 k = 0; k < n; k++)\n\t\tacc = one_fma(",
             "for (u64 k = 0; k < n - (n > 1); k++)\n\t\tacc = one_fma("),
    Mutation("coefficient left out of a single gradient", UPDATE,
             "form == GRADIENT_ONE ? 0.0f + x : one_fma(coef, x, 0.0f)", "0.0f + x"),
    Mutation("coefficient left out in a dim compiled apart", ROWS_APART,
             "columns_##KIND(u, row, g, *coef, DIM, GRADIENT_WEIGHTED, true);",
             "columns_##KIND(u, row, g, *coef, DIM, GRADIENT_ONE, true);"),
    Mutation("clips left out in a dim compiled apart", ROWS_APART,
             "\tif (u->flags)\n\t\treturn NULL;\n", ""),
    Mutation("accumulator used before it grew", OPTIMIZERS,
             "\ts[0] = s[0] + g * g; \\\n\tw = w - lr * g / SQRT(s[0]);",
             "\tw = w - lr * g / SQRT(s[0]); \\\n\ts[0] = s[0] + g * g;"),
    Mutation("gradient ascent", OPTIMIZERS, "\tw = w - lr * g;", "\tw = w + lr * g;"),
    Mutation("nesterov left out of AdagradMomentum", OPTIMIZERS,
             "w = w - lr * (h[0] * s[1] + g);", "w = w - lr * s[1];"),
    Mutation("momentum of AdagradMomentum before the preconditioner", OPTIMIZERS,
             "\tg = g * POW(s[0] + h[4]); \\\n\ts[1] = h[0] * s[1] + g;",
             "\ts[1] = h[0] * s[1] + g; \\\n\tg = g * POW(s[0] + h[4]);"),
    Mutation("beta2 of 1 taken for a mean", OPTIMIZERS, "if (h[3] == 1.0f)", "if (h[3] > 1.0f)"),
    Mutation("power rounded to f32", OPTIMIZERS,
             "*power = -1.0 / h[2];", "*power = -1.0f / h[2];"),
    Mutation("l1 pulls the other way", OPTIMIZERS,
             "CLIP(s[1], -p[0], p[0]) - s[1]", "s[1] - CLIP(s[1], -p[0], p[0])"),
    Mutation("l2 counted once", OPTIMIZERS, "p[1] = 2.0f * (", "p[1] = ("),
    Mutation("linear with the power of the old accumulator", OPTIMIZERS,
             "s[1] = s[1] + g - (after - before) * w / lr;",
             "s[1] = s[1] + g - before * w / lr;"),
    Mutation("weight held back forgotten", PROTO,
             "__typeof__(w) all = w + s[1], event", "__typeof__(w) all = w, event",
             ("test_kernels_proto",)),
    Mutation("least share counted beside the share", PROTO,
             "share = h[5] + (1.0f - h[5]) * share;", "share = h[5] + share;",
             ("test_kernels_proto",)),
    Mutation("hard limit of the benefit instead of what is missing", PROTO,
             "CLIP(s[2], h[2] - h[9], __builtin_inff())", "CLIP(s[2], -h[9], __builtin_inff())",
             ("test_kernels_proto",)),
    Mutation("epsilon not corrected", OPTIMIZERS,
             "p[1] = (float)(h[2] * root);", "p[1] = h[2];"),
    Mutation("gradients of a feature numbered by the ids before", "engine/apply.c",
             "base += f->outputs;", "base += f->occurrences;"),
    Mutation("a row's sum goes on where its feature ends", ROWS_APART,
             "if (group->count > KERNEL_RUN || occ[group->count - 1] >= s->end)",
             "if (group->count > KERNEL_RUN)"),
    Mutation("bias step off by one", "engine/apply.c",
             "model->optimizer_steps + 1, model", "model->optimizer_steps, model"),
    Mutation("steps of the optimizer not counted", STEP, "\tmodel->optimizer_steps++;\n", ""),
    Mutation("power loses its low part", "engine/kernels/math64.h",
             "return (struct math64_pair){ sum, rest - (sum - product) };",
             "return (struct math64_pair){ sum, 0.0 };"),
    Mutation("last untouched row skipped", ROWS,
             "for (; row < last; row++) {", "for (; row + 1 < last; row++) {"),
    Mutation("touched rows updated again", ROWS,
             "p->groups[group].row == row)", "false)"),
    Mutation("chunks of untouched rows overlap", ROWS,
             "u64 row = task * apply->most, last = row + apply->most, ",
             "u64 row = task * apply->most, last = row + apply->most + 1, "),
    Mutation("decay after the optimizer", UPDATE,
             """\t\tif (!plain && u->flags & KERNEL_DECAY) \\
\t\t\tw = w - decay_factor(u) * w; \\
\t\tKERNEL_##KIND##_STEP \\
""",
             """\t\tKERNEL_##KIND##_STEP \\
\t\tif (!plain && u->flags & KERNEL_DECAY) \\
\t\t\tw = w - decay_factor(u) * w; \\
"""),
    Mutation("decay by the corrected rate", UPDATE,
             "u->decay * u->lr : u->decay", "u->decay * u->prepared[0] : u->decay"),
    Mutation("switch of one half accepted", "engine/blob_table.c",
             "(range != KERNEL_SWITCH || !bits || bits == F32_ONE)", "true"),
    Mutation("decay after the optimizer's rate", UPDATE,
             "u->decay * u->lr : u->decay", "u->decay : u->decay"),
    Mutation("stale step without pipelining", STEP,
             "lag = model->pipelining ? 2 : 1;", "lag = 2;"),
    Mutation("fresh step with pipelining", STEP,
             "lag = model->pipelining ? 2 : 1;", "lag = 1;"),
    Mutation("update not held for the next lookup", STEP,
             "if (model->pipelining && step_looked(model) <= step)",
             "if (model->pipelining && step_looked(model) <= step - 1)"),
    Mutation("repeated update accepted", STEP,
             "if (step != replica->updated + 1 || step > replica->looked)",
             "if (step > replica->looked)"),
    Mutation("id equal to the vocabulary accepted", IDS,
             "ids, table->record.rows, f->given.id_width };",
             "ids, table->record.rows + 1, f->given.id_width };"),
    Mutation("negative id clamped to the last row", IDS,
             "*row = (s64)*row < 0 ? 0 : rows - 1;", "*row = rows - 1;"),
    Mutation("last occurrence of the last row lost", "engine/partition_groups.c",
             "(u32)first, (u32)(i + 1 - first) };",
             "(u32)first, (u32)(i + (i + 1 < pass->p->count) - first) };"),
    Mutation("serving keeps weights of 0", SERVING,
             "!(bag->weight > 0)", "!(bag->weight >= 0)"),
    Mutation("serving leaves negative weights out of sums", SERVING,
             "(p->table->combiner != EMBENG_SUM && ", "("),
    Mutation("serving validates rank 3 by request only", "runtime/src/serving_plan.c",
             "!p->f->unchecked_serving || coo.rank > 2", "!p->f->unchecked_serving"),
    Mutation("serving forgets the first part of a long bag", SERVING_SUM,
             "c->work.resume = open;", "c->work.resume = false;"),
    Mutation("serving scales a long bag twice", SERVING_SUM,
             "c->scales[c->samples] = 1.0f;",
             "c->scales[c->samples] = scale_of(c->combiner, c->denominator);"),
    Mutation("serving takes the denominator of the bag before", SERVING_SUM,
             "\tc->denominator = 0;\n\tc->bag[++", "\tc->bag[++"),
    Mutation("serving weighs a sequence of an output shape", "runtime/src/serving_plan.c",
             "\tp->weights = NULL;\n", ""),
    Mutation("partition by the id alone, without rotation", "engine/pcsr_items.c",
             "power ? (id + k->rotation) & (k->cores - 1) :", "power ? id & (k->cores - 1) :"),
    Mutation("token without the table's place in the stack", "engine/pcsr_items.c",
             "id / k->cores) + k->first_token;", "id / k->cores);"),
    Mutation("gains of equal ids not added", "engine/kernels/body_merge.h",
             "m->gains[again.items[i]] += merge_float(gain);",
             "m->gains[again.items[i]] = merge_float(gain);"),
    Mutation("columns counted per item", "engine/kernels/body_merge.h",
             "m->columns += m->before >> m->row_bits != item >> m->row_bits;",
             "m->columns += !equal;"),
    Mutation("each of a vector's items a column", "engine/kernels/body_merge.h",
             "VEC_WORDS - (u32)__builtin_popcount(vec_words_equal(item >> m->row_bits,\n"
             "\t\t\t\t\t\t\t\t\t  before >> m->row_bits));",
             "VEC_WORDS;"),
    Mutation("the last of flat words lost", "engine/pcsr_items.c",
             "words->starts[job->given->cores] = (u32)count;",
             "words->starts[job->given->cores] = (u32)count - 1;"),
    Mutation("limit reached taken for broken", "engine/pcsr_limit.c",
             "run->ids <= g->max_ids) &&", "run->ids < g->max_ids) &&"),
    Mutation("dropping goes on behind the limit", "engine/pcsr_limit.c",
             "columns == g->max_unique_ids", "columns > g->max_unique_ids"),
    Mutation("boundary before a minibatch's last bucket", "engine/pcsr_split.c",
             "boundaries |= 1ull << (first + size / 2);\n\t\t\t\tcounts",
             "boundaries |= 1ull << (first + size / 2 - 1);\n\t\t\t\tcounts"),
    Mutation("pieces never joined", "engine/pcsr_split.c",
             "kept |= join(job, &s, pieces);", "kept |= pieces;"),
    Mutation("row pointers of jax from the device's buffer", "engine/pcsr_emit.c",
             "job->segment ? w->core->base : 0;", "0;"),
    Mutation("row pointer behind the padding", "engine/pcsr_emit.c",
             "\t\tpointers[p] = (s32)(w->at - origin);\n\t\tpad(w);",
             "\t\tpad(w);\n\t\tpointers[p] = (s32)(w->at - origin);"),
    Mutation("rows of a stack without rotation", STACKS,
             "rotation = m->given.rotation;", "rotation = m->given.rotation * 0;"),
    Mutation("token of a stack taken for one of its table", STACKS,
             "(u64)((u32)token - m->token) *", "(u64)(u32)token *"),
    Mutation("sample of a core taken for the device's", STACKS,
             "t->core * m->samples + (sample - m->first);", "sample - m->first;"),
    Mutation("row pointers of a stack all from its first item", STACKS,
             "g->flags & EMBENG_STACK_OWN_PARTS ? first : 0;", "0;"),
    Mutation("partition of a stack behind the one before it", STACKS,
             "u64 at = pcsr_aligned(end)", "u64 at = end"),
    Mutation("hash of a column without its length", "engine/highway.c",
             "h.v1[i] = halves_rotated(h.v1[i], COLUMN_BYTES);", ""),
]
