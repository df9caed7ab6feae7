# SPDX-License-Identifier: MIT
"""The mistakes that mutate.py makes. Each is one that somebody could make."""
from typing import NamedTuple


class Mutation(NamedTuple):
    name: str
    file: str
    old: str
    new: str


LOOKUP = "engine/kernels/body_lookup.h"
SCALE = "engine/kernels/scale.h"
GRADIENT = "engine/kernels/body_gradient.h"
UPDATE = "engine/kernels/body_update.h"
OPTIMIZERS = "engine/kernels/optimizers.h"
STEP = "engine/step.c"
IDS = "engine/ids.c"
SERVING = "runtime/src/serving.h"
SERVING_SUM = "runtime/src/serving_sum.c"

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
             "weighted ? vec_fma(vec_all(w->weights[k]), x, acc[i]) : acc[i] + x",
             "acc[i] + x"),
    Mutation("last duplicate lost", GRADIENT,
             "for (u64 k = 0; k < n; k++)\n\t\tacc = one_fma(",
             "for (u64 k = 0; k < n - (n > 1); k++)\n\t\tacc = one_fma("),
    Mutation("coefficient left out of a single gradient", UPDATE,
             "form == GRADIENT_ONE ? 0.0f + x : one_fma(coef, x, 0.0f)", "0.0f + x"),
    Mutation("accumulator used before it grew", OPTIMIZERS,
             "\ts[0] = s[0] + g * g; \\\n\tw = w - lr * g / SQRT(s[0]);",
             "\tw = w - lr * g / SQRT(s[0]); \\\n\ts[0] = s[0] + g * g;"),
    Mutation("gradient ascent", OPTIMIZERS, "\tw = w - lr * g;", "\tw = w + lr * g;"),
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
             "check_ids(f->rows.data, ids, table->record.rows, feature, fault)",
             "check_ids(f->rows.data, ids, table->record.rows + 1, feature, fault)"),
    Mutation("negative id clamped to the last row", IDS,
             "*row = (s64)*row < 0 ? 0 : rows - 1;", "*row = rows - 1;"),
    Mutation("last occurrence of the last row lost", "engine/partition.c",
             "p->groups[i + 1].first : p->count)", "p->groups[i + 1].first : p->count - 1)"),
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
]
