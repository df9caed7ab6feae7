/* SPDX-License-Identifier: MIT */
/* `embeng plan`: a model from a file or the call, and the bytes it will need. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "../frame/output.h"
#include "embeng.h"

/**
 * struct plan_call - arguments of `embeng plan`
 * @path: path of a model file, or NULL
 * @checkpoint: folder of a checkpoint, or NULL
 * @tables: [table_count] NAME:ROWSxDIM[:OPTIMIZER]
 * @features: [feature_count] NAME:TABLE[:LENGTH]
 * @device: name of the device, or NULL
 * @replicas: number of replicas; 0: the model's
 * @options: options of the plan; cores and step depth that are 0 are the device's
 */
struct plan_call {
	const char *path, *checkpoint;
	const char **tables, **features;
	size_t table_count, feature_count;
	const char *device;
	int64_t replicas;
	struct embeng_plan_options options;
};

/*
 * Makes the model of the call and sets its cores in @call. 0, or an exit code after a reported
 * failure.
 */
int plan_model(struct plan_call *call, const struct output *out, struct embeng_model **model);

/**
 * struct plan_report - contents of the report
 * @memory: bytes of memory in the machine
 * @available: the part of @memory that no other process uses
 */
struct plan_report {
	const struct embeng_model *model;
	const struct embeng_plan *plan;
	const struct plan_call *call;
	const struct embeng_device_info *device;
	uint64_t memory, available;
};

/* Prints the report. Return: CLI_OK, or CLI_CHECK when the model does not fit. */
int plan_say(const struct plan_report *report, const struct output *out);

#endif
