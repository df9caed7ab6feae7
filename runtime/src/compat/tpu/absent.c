// SPDX-License-Identifier: MIT
/*
 * Takes the place of the other files of this folder in a library that was built without protobufs.
 * The functions stay, so that a program runs with every libembeng: those that would read or write
 * bytes say what is missing, and the others have nothing to work on.
 *
 * Nothing is kept; any thread may call.
 */
#include "base/error.h"
#include "embeng/tpu.h"

static int refuse_protobufs(const char *function)
{
	return fail(-ENOTSUP,
		    "%s: this libembeng was built without protobufs; build it with `meson setup "
		    "-Dprotobuf=enabled`",
		    function);
}

int embeng_tpu_export(const struct embeng_model *model, const struct embeng_tpu_settings *settings,
		      void **bytes, size_t *length)
{
	(void)model;
	(void)settings;
	(void)bytes;
	(void)length;
	return refuse_protobufs("embeng_tpu_export");
}

int embeng_tpu_import(const void *bytes, size_t length, const struct embeng_tpu_hooks *hooks,
		      struct embeng_tpu **out)
{
	(void)bytes;
	(void)length;
	(void)hooks;
	(void)out;
	return refuse_protobufs("embeng_tpu_import");
}

void embeng_tpu_free(struct embeng_tpu *tpu)
{
	(void)tpu;
}

const struct embeng_model *embeng_tpu_model(const struct embeng_tpu *tpu)
{
	(void)tpu;
	return NULL;
}

int embeng_tpu_get_settings(const struct embeng_tpu *tpu, struct embeng_tpu_settings *settings)
{
	(void)tpu;
	(void)settings;
	return refuse_protobufs("embeng_tpu_get_settings");
}

size_t embeng_tpu_unknown_count(const struct embeng_tpu *tpu)
{
	(void)tpu;
	return 0;
}

int embeng_tpu_get_unknown(const struct embeng_tpu *tpu, size_t index,
			   struct embeng_tpu_unknown *unknown)
{
	(void)tpu;
	(void)index;
	(void)unknown;
	return refuse_protobufs("embeng_tpu_get_unknown");
}

int embeng_tpu_export_optimizer(const struct embeng_optimizer *optimizer, int32_t tag, void **bytes,
				size_t *length)
{
	(void)optimizer;
	(void)tag;
	(void)bytes;
	(void)length;
	return refuse_protobufs("embeng_tpu_export_optimizer");
}

int embeng_tpu_import_optimizer(const void *bytes, size_t length,
				struct embeng_optimizer *optimizer, int32_t *tag)
{
	(void)bytes;
	(void)length;
	(void)optimizer;
	(void)tag;
	return refuse_protobufs("embeng_tpu_import_optimizer");
}

int embeng_tpu_export_layouts(const struct embeng_table_layout *tables, size_t count, void **bytes,
			      size_t *length)
{
	(void)tables;
	(void)count;
	(void)bytes;
	(void)length;
	return refuse_protobufs("embeng_tpu_export_layouts");
}

int embeng_tpu_import_layouts(const void *bytes, size_t length, struct embeng_layouts **out)
{
	(void)bytes;
	(void)length;
	(void)out;
	return refuse_protobufs("embeng_tpu_import_layouts");
}

void embeng_layouts_free(struct embeng_layouts *layouts)
{
	(void)layouts;
}
