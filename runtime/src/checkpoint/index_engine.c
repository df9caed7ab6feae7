// SPDX-License-Identifier: MIT
/*
 * The options of the whole model in a checkpoint's index: replicas, step depth, pipelining, and how
 * its tables are sharded over hosts. Reading and writing are side by side, so that they stay alike.
 *
 * Only arguments are touched; no lock is needed.
 */
#include <string.h>

#include "base/error.h"
#include "index.h"

static const char *const shardings[] = {
	[EMBENG_SHARDING_DIV] = "div", [EMBENG_SHARDING_MOD] = "mod"};

static int find_sharding(const struct place *at, const char *text, enum embeng_sharding *out)
{
	for (int i = EMBENG_SHARDING_DIV; i <= EMBENG_SHARDING_MOD; i++) {
		if (!strcmp(shardings[i], text)) {
			*out = (enum embeng_sharding)i;
			return 0;
		}
	}
	return fail(-ENOTSUP,
		    "%s: \"sharding\" is \"%.40s\", which this library does not know; update it",
		    at->file, text);
}

static const char *const policies[] = {
	[EMBENG_NON_FINITE_ERROR] = "error",
	[EMBENG_NON_FINITE_DROP] = "drop",
	[EMBENG_NON_FINITE_ALLOW] = "allow",
};

/* Absent where it is an error. */
static int read_non_finite(const struct json *o, const struct place *at,
			   struct embeng_engine_config *c)
{
	const char *text = policies[EMBENG_NON_FINITE_ERROR];
	int ret = json_get(o, "non_finite") ? json_text(o, at, "non_finite", &text) : 0;

	if (ret)
		return ret;
	for (int i = EMBENG_NON_FINITE_ERROR; i <= EMBENG_NON_FINITE_ALLOW; i++) {
		if (!strcmp(policies[i], text)) {
			c->non_finite = (enum embeng_non_finite)i;
			return 0;
		}
	}
	return fail(-ENOTSUP,
		    "%s: \"non_finite\" is \"%.40s\", which this library does not know; update it",
		    at->file, text);
}

/* Both are absent where one host saved. */
static int read_hosts(const struct json *o, const struct place *at, struct embeng_engine_config *c)
{
	const char *sharding = shardings[EMBENG_SHARDING_DIV];
	uint64_t hosts = 1;
	int ret = 0;

	if (json_get(o, "hosts"))
		ret = json_number(o, at, "hosts", 1, INT32_MAX, &hosts);
	if (!ret && json_get(o, "sharding"))
		ret = json_text(o, at, "sharding", &sharding);
	c->hosts = (uint32_t)hosts;
	return ret ? ret : find_sharding(at, sharding, &c->sharding);
}

int index_read_engine(const struct json *document, const struct place *at,
		      struct embeng_model *model)
{
	struct embeng_engine_config c = {.size = sizeof(c)};
	uint64_t replicas, depth;
	bool pipelining = false, fixed_shapes = false;
	const struct json *o;
	int ret = json_member(document, at, "engine", JSON_OBJECT, &o);

	ret = ret ? ret : json_number(o, at, "replicas", 1, UINT32_MAX, &replicas);
	ret = ret ? ret : json_number(o, at, "step_depth", 0, UINT32_MAX, &depth);
	ret = ret ? ret : json_flag(o, at, "pipelining", &pipelining);
	ret = ret ? ret : json_flag(o, at, "fixed_shapes", &fixed_shapes);
	ret = ret ? ret : read_hosts(o, at, &c);
	ret = ret ? ret : read_non_finite(o, at, &c);
	if (ret)
		return ret;
	c.replicas = (uint32_t)replicas;
	c.step_depth = (uint32_t)depth;
	c.pipelining = pipelining;
	c.fixed_shapes = fixed_shapes;
	return embeng_model_set_engine(model, &c);
}

void index_write_engine(struct json_writer *w, const struct embeng_engine_config *engine)
{
	json_write_object(w, "engine");
	json_write_number(w, "replicas", engine->replicas);
	if (engine->pipelining)
		json_write_flag(w, "pipelining", true);
	if (engine->fixed_shapes)
		json_write_flag(w, "fixed_shapes", true);
	json_write_number(w, "step_depth", engine->step_depth);
	if (engine->non_finite)
		json_write_text(w, "non_finite", policies[engine->non_finite]);
	if (engine->hosts > 1) {
		json_write_number(w, "hosts", engine->hosts);
		json_write_text(w, "sharding", shardings[engine->sharding]);
	}
	json_write_close(w);
}
