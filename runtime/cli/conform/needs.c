// SPDX-License-Identifier: MIT
/*
 * Lists the capabilities that a vector needs and this command lacks, by the vector's own list and
 * by its contents. Such a vector is skipped.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "run.h"
#include "schema.h"
#include "value.h"
#include "embeng/tpu.h"

static const char *const present[] = {
	"options",   "policies", "slots",	 "hosts",  "checkpoint", "serving",
	"partition", "stacking", "quantization", "spread", "shards",
};

static const struct {
	const char *verb, *capability;
} verb_needs[] = {
	{"lookup", "serving"},	     {"save", "checkpoint"},   {"restore", "checkpoint"},
	{"expect_config", "config"}, {"stacking", "stacking"}, {"partition", "partition"},
	{"spread", "spread"},
};

/* A library may be built without protobufs; it says so before it looks at what it is given. */
static bool has_protobufs(void)
{
	return embeng_tpu_import(NULL, 0, NULL, NULL) != -ENOTSUP;
}

/* The optimizers that there are, and some more. */
static bool has_capability(const char *name)
{
	static const char optimizer[] = "optimizer:";
	struct embeng_optimizer made;

	if (!strncmp(name, optimizer, sizeof(optimizer) - 1))
		return !embeng_optimizer_by_name(name + sizeof(optimizer) - 1, 0.0f, &made);
	if (!strcmp(name, "config"))
		return has_protobufs();
	for (size_t i = 0; i < sizeof(present) / sizeof(present[0]); i++) {
		if (!strcmp(present[i], name))
			return true;
	}
	return false;
}

static void need_capability(struct json_object *lacks, const char *name)
{
	if (has_capability(name))
		return;
	for (size_t i = 0; i < json_object_array_length(lacks); i++) {
		if (!strcmp(json_object_get_string(json_object_array_get_idx(lacks, i)), name))
			return;
	}
	json_object_array_add(lacks, json_object_new_string(name));
}

static void engine_needs(struct json_object *lacks, const struct json *engine)
{
	if (integer_member(engine, "hosts", 1) > 1)
		need_capability(lacks, "hosts");
}

static void table_needs(struct json_object *lacks, const struct json *table)
{
	const char *kind = text_member(member(table, "optimizer"), "kind", NULL);
	char name[64];

	/* A kind that nobody knows is the model's to refuse. */
	if (kind && optimizer_is_known(kind)) {
		snprintf(name, sizeof(name), "optimizer:%s", kind);
		need_capability(lacks, name);
		if (!strcmp(kind, "program"))
			need_capability(lacks, "program");
	}
	if (member(table, "quantization"))
		need_capability(lacks, "quantization");
	if (member(table, "part"))
		need_capability(lacks, "shards");
}

static void visit_elements(struct json_object *lacks, const struct json *list,
			   void (*needs)(struct json_object *lacks, const struct json *element))
{
	for (size_t i = 0; i < list_length(list); i++)
		needs(lacks, json_at(list, i));
}

static void step_needs(struct json_object *lacks, const struct json *step)
{
	for (size_t i = 0; i < sizeof(verb_needs) / sizeof(verb_needs[0]); i++) {
		if (member(step, verb_needs[i].verb))
			need_capability(lacks, verb_needs[i].capability);
	}
	engine_needs(lacks, member(member(step, "reopen"), "engine"));
	visit_elements(lacks, member(member(step, "add_tables"), "tables"), table_needs);
}

static void need_named(struct json_object *lacks, const struct json *name)
{
	need_capability(lacks, json_string(name));
}

struct json_object *vector_lacks(const struct json *vector)
{
	struct json_object *lacks = json_object_new_array();

	visit_elements(lacks, member(vector, "requires"), need_named);
	engine_needs(lacks, member(vector, "engine"));
	visit_elements(lacks, member(vector, "tables"), table_needs);
	visit_elements(lacks, member(vector, "steps"), step_needs);
	return lacks;
}
