// SPDX-License-Identifier: MIT
/*
 * Checks the settings that callers give beside the model when they export it.
 *
 * Only arguments are touched; no lock is needed.
 */
#include "base/check.h"
#include "settings.h"

static int enumerator_check(const char *what, unsigned int value, unsigned int most)
{
	return value <= most ? 0
			     : fail(-EINVAL,
				    "embeng_tpu_settings: %s %u is above %u, the last there "
				    "is",
				    what, value, most);
}

static int count_check(const char *what, int32_t count)
{
	return count >= 0 ? 0 : fail(-ERANGE, "embeng_tpu_settings: %s %d is below 0", what, count);
}

static int directory_check(const char *directory)
{
	size_t good = directory ? utf8_good(directory) : 0;

	return !directory || !directory[good]
		       ? 0
		       : fail(-EINVAL,
			      "embeng_tpu_settings: byte %zu of profile_directory is not "
			      "UTF-8",
			      good);
}

static int hot_ids_check(const struct embeng_tpu_settings *s, size_t tables)
{
	int code = 0;

	if (s->hot_id_count && (s->hot_id_count != tables || !s->hot_ids))
		return fail(-EINVAL,
			    "embeng_tpu_settings: hot_ids are of %zu tables, the model has "
			    "%zu",
			    s->hot_ids ? s->hot_id_count : 0, tables);
	for (size_t t = 0; !code && t < s->hot_id_count; t++)
		code = enumerator_check("an entry of hot_ids", s->hot_ids[t],
					EMBENG_TPU_HOT_IDS_MIGRATION_ONLY);
	return code;
}

int tpu_settings_take(struct embeng_tpu_settings *s, const struct embeng_tpu_settings *given,
		      size_t tables)
{
	int code = 0;

	*s = (struct embeng_tpu_settings){.size = sizeof(*s)};
	if (given)
		code = config_take(s, given, sizeof(*s), "embeng_tpu_settings");
	if (!code)
		code = enumerator_check("mode", s->mode, EMBENG_TPU_BACKWARD_PASS_ONLY);
	if (!code)
		code = enumerator_check("form", s->form, EMBENG_TPU_BOTH);
	if (!code)
		code = enumerator_check("sharding", s->sharding, EMBENG_TPU_MOD);
	if (!code)
		code = count_check("hosts", s->hosts);
	if (!code)
		code = count_check("spmd_cores_per_replica", s->spmd_cores_per_replica);
	if (!code)
		code = directory_check(s->profile_directory);
	if (!s->hosts)
		s->hosts = 1;
	return code ? code : hot_ids_check(s, tables);
}
