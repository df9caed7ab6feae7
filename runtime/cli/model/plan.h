/* SPDX-License-Identifier: MIT */
/* `embeng plan`: a model from a file or the call, and the bytes it will need. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "../frame/output.h"
#include "embeng.h"

/**
 * struct plan_call - a verb's arguments
 * @path: model file, or NULL
 * @checkpoint: folder of a checkpoint, or NULL
 * @tables: [table_count] NAME:ROWSxDIM[:OPTIMIZER]
 * @features: [feature_count] NAME:TABLE[:LENGTH]
 * @device: name, or NULL
 * @replicas: 0: the model's
 * @options: of the plan; cores and step depth 0: the device's
 */
struct plan_call {
	const char *path, *checkpoint;
	const char **tables, **features;
	size_t table_count, feature_count;
	const char *device;
	int64_t replicas;
	struct embeng_plan_options options;
};

/* The model that was asked for, its cores in @call. 0, or an exit code: the failure is reported. */
int plan_model(struct plan_call *call, const struct output *out,
	       struct embeng_model **model);

/**
 * struct plan_report - what there is to say
 * @memory: of the machine, bytes
 * @available: of these, without taking it from others
 */
struct plan_report {
	const struct embeng_model *model;
	const struct embeng_plan *plan;
	const struct plan_call *call;
	const struct embeng_device_info *device;
	uint64_t memory, available;
};

/* CLI_OK, or CLI_CHECK: it does not fit. */
int plan_say(const struct plan_report *report, const struct output *out);

#endif
