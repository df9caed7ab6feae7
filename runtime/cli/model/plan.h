/* SPDX-License-Identifier: MIT */
/* `embeng plan`: a model from a file or the call, the bytes it will need, and what several hosts cost. */
#ifndef CLI_PLAN_H
#define CLI_PLAN_H

#include "../frame/output.h"
#include "embeng.h"
#include "embeng/hosts.h"

/**
 * struct plan_call - arguments of `embeng plan`
 * @path: path of a model file, or NULL
 * @checkpoint: folder of a checkpoint, or NULL
 * @tables: [table_count] NAME:ROWSxDIM[:OPTIMIZER]
 * @features: [feature_count] NAME:TABLE[:LENGTH]
 * @device: name of the device, or NULL
 * @replicas: number of replicas; 0: the model's
 * @options: options of the plan; cores and step depth that are 0 are the device's
 * @hosts: options of a plan of hosts; its hosts are 0 if there is none
 * @profile: folder of a profile, or NULL
 * @only_with_hosts: name of an option that was given and is about hosts, or NULL
 */
struct plan_call {
	const char *path, *checkpoint;
	const char **tables, **features;
	size_t table_count, feature_count;
	const char *device;
	int64_t replicas;
	struct embeng_plan_options options;
	struct embeng_hosts_options hosts;
	const char *profile, *only_with_hosts;
};

/*
 * Makes the model of the call and sets its cores in @call. 0, or an exit code after a reported
 * failure.
 */
int plan_model(struct plan_call *call, const struct output *out, struct embeng_model **model);

/**
 * struct plan_report - contents of the report
 * @plan: plan of one process, or NULL
 * @hosts: plan of several hosts, or NULL
 * @memory: bytes of memory in the machine
 * @available: the part of @memory that no other process uses
 */
struct plan_report {
	const struct embeng_model *model;
	const struct embeng_plan *plan;
	const struct embeng_hosts_plan *hosts;
	struct plan_call *call;
	const struct embeng_device_info *device;
	uint64_t memory, available;
};

/* Prints the report. Return: CLI_OK, or CLI_CHECK when the model does not fit. */
int plan_say(const struct plan_report *report, const struct output *out);

/* plan_limits.c: the most bytes of tables and slots that a host has. */
uint64_t plan_most_tables(const struct embeng_hosts_plan *plan);
/* Whether the model keeps the device's limits other than memory, on each host. */
bool plan_keeps_limits(const struct plan_report *report);
/* Says which limits the model exceeds, if any. */
void plan_say_limits(const struct plan_report *report);
/* Says "WHERE: NEED of ROOM, fits". */
void plan_say_fit(const char *where, uint64_t need, uint64_t room);
/* Adds the device, the memory that there is, and whether bytes of tables and all bytes fit. */
void plan_add_fit(struct json_object *document, const struct plan_report *report, uint64_t tables,
		  uint64_t all);

/* plan_hosts.c: the same as plan_say() for a plan of hosts. */
int plan_say_hosts(const struct plan_report *report, const struct output *out);
/* plan_hosts_json.c: its document. */
int plan_emit_hosts(const struct plan_report *report, const struct output *out);

#endif
