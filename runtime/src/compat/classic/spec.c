// SPDX-License-Identifier: MIT
/*
 * The list of tables and features that a specification of the v1 interface becomes, in whichever
 * form it was given. The list belongs to the specification and is freed with it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "classic.h"

struct classic_table *classic_add_table(struct embeng_classic *c)
{
	struct classic_table *grown = reallocarray(c->tables, c->table_count + 1, sizeof(*grown));

	if (!grown) {
		fail(-ENOMEM, "no memory for a table of a specification");
		return NULL;
	}
	c->tables = grown;
	memset(&grown[c->table_count], 0, sizeof(*grown));
	return &grown[c->table_count++];
}

struct classic_feature *classic_add_feature(struct embeng_classic *c)
{
	struct classic_feature *grown = reallocarray(c->features, c->feature_count + 1,
						     sizeof(*grown));

	if (!grown) {
		fail(-ENOMEM, "no memory for a feature of a specification");
		return NULL;
	}
	c->features = grown;
	memset(&grown[c->feature_count], 0, sizeof(*grown));
	return &grown[c->feature_count++];
}

int classic_copy(const char *text, char **copy)
{
	*copy = text ? strdup(text) : NULL;
	return !text || *copy ? 0 : fail(-ENOMEM, "no memory for a text of a specification");
}
