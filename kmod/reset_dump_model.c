// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parts of a dump that stand in buffers of the program: the tables and features of the loaded
 * model, and the descriptor of a command. They let a reader name the table that a command is about,
 * which the command itself says by a key alone.
 *
 * A descriptor says counts, strides and numbers of tables, features and rows of a range. The arrays
 * that it names by key, which hold ids, weights, gradients and rows, are not read. Only pages that
 * the driver made are read, and the program may have changed them since the device read them.
 *
 * Nothing is kept, and no reference is taken; the caller holds what reset_dump.c describes.
 */
#include <linux/minmax.h>

#include <drm/drm_print.h>

#include "context.h"
#include "reset.h"

/* Records and lines that are looked at; a model may have hundreds of thousands of features. */
#define MODEL_RECORDS 4096u
#define DESCRIPTOR_LINES 64u

union record {
	struct embeng_record head;
	struct embeng_record_table table;
	struct embeng_record_feature feature;
	struct embeng_record_name name;
};

/* Records of each type that came before the present one. */
struct counts {
	u32 tables;
	u32 features;
};

static void print_record(const union record *r, struct counts *counts, struct drm_printer *p)
{
	switch (r->head.type) {
	case EMBENG_RECORD_TABLE:
		drm_printf(p, "  table %u rows %llu dim %u optimizer %u\n", counts->tables++,
			   r->table.rows, r->table.dim, r->table.optimizer);
		break;
	case EMBENG_RECORD_FEATURE:
		drm_printf(p, "  feature %u table %u\n", counts->features++, r->feature.table);
		break;
	case EMBENG_RECORD_NAME:
		drm_printf(p, "  name of %u index %u \"%*pE\"\n", r->name.of, r->name.index,
			   (int)strnlen(r->name.name, sizeof(r->name.name)), r->name.name);
		break;
	}
}

/* The bytes of a record that print_record() looks at, or 0 for a record that is left out. */
static u32 shown_record_bytes(const struct embeng_record *head)
{
	u32 bytes = head->type == EMBENG_RECORD_TABLE	? sizeof(struct embeng_record_table) :
		    head->type == EMBENG_RECORD_FEATURE ? sizeof(struct embeng_record_feature) :
		    head->type == EMBENG_RECORD_NAME	? sizeof(struct embeng_record_name) :
							  0;

	return head->length < bytes ? 0 : bytes;
}

/**
 * embeng_dump_model() - print the tables and features of a context's model
 * @ctx: context
 * @p: where to
 *
 * Only a model that was loaded by DRM_IOCTL_EMBENG_MODEL_LOAD is known. The device may have refused
 * it.
 */
void embeng_dump_model(struct embeng_context *ctx, struct drm_printer *p)
{
	struct embeng_mem blob = ctx->blob;
	struct embeng_blob_header header;
	struct counts counts = {};
	u64 at = sizeof(header);
	u32 i, bytes;
	union record r;

	if (!blob.generation || embeng_region_read(ctx, &blob, 0, &header, sizeof(header)))
		return;
	drm_printf(p, "  model hash %#llx records %u\n", header.hash, header.record_count);
	for (i = 0; i < MODEL_RECORDS; i++, at += r.head.length) {
		if (embeng_region_read(ctx, &blob, at, &r.head, sizeof(r.head)) ||
		    r.head.length < sizeof(r.head))
			return;
		bytes = shown_record_bytes(&r.head);
		if (bytes && embeng_region_read(ctx, &blob, at, &r, bytes))
			return;
		if (bytes)
			print_record(&r, &counts, p);
	}
}

static int print_lookup(struct embeng_context *ctx, const struct embeng_mem *desc,
			struct drm_printer *p)
{
	struct embeng_lookup_feature f;
	struct embeng_lookup head;
	u32 i;
	int ret = embeng_region_read(ctx, desc, 0, &head, sizeof(head));

	if (ret)
		return ret;
	drm_printf(p, "    descriptor features %u stride %u hash %#llx stacks %u members %u\n",
		   head.feature_count, head.feature_stride, head.model_hash, head.stack_count,
		   head.member_count);
	for (i = 0; !ret && i < min(head.feature_count, DESCRIPTOR_LINES); i++) {
		ret = embeng_region_read(ctx, desc, sizeof(head) + (u64)i * head.feature_stride, &f,
					 sizeof(f));
		if (!ret)
			drm_printf(p, "    descriptor feature %u form %u samples %llu ids %llu\n",
				   f.feature, f.form, f.sample_count, f.id_count);
	}
	return ret;
}

static int print_update(struct embeng_context *ctx, const struct embeng_mem *desc,
			struct drm_printer *p)
{
	struct embeng_update_feature f;
	struct embeng_update head;
	u32 i;
	int ret = embeng_region_read(ctx, desc, 0, &head, sizeof(head));

	if (ret)
		return ret;
	drm_printf(p, "    descriptor features %u stride %u hash %#llx rates %u flags %#x\n",
		   head.feature_count, head.feature_stride, head.model_hash, head.rate_count,
		   head.flags);
	for (i = 0; !ret && i < min(head.feature_count, DESCRIPTOR_LINES); i++) {
		ret = embeng_region_read(ctx, desc, sizeof(head) + (u64)i * head.feature_stride, &f,
					 sizeof(f));
		if (!ret)
			drm_printf(p, "    descriptor feature %u flags %#x gradients %llu\n",
				   f.feature, f.flags, f.gradients.length);
	}
	return ret;
}

static int print_rows(struct embeng_context *ctx, const struct embeng_mem *desc,
		      struct drm_printer *p)
{
	struct embeng_rows rows;
	int ret = embeng_region_read(ctx, desc, 0, &rows, sizeof(rows));

	if (!ret)
		drm_printf(p, "    descriptor table %u slot %u first %llu count %llu fill %u\n",
			   rows.table, rows.slot, rows.first, rows.count, rows.fill);
	return ret;
}

/**
 * embeng_dump_descriptor() - print the descriptor of a command, without the arrays that it names
 * @ctx: context of the command
 * @cmd: command
 * @p: where to
 */
void embeng_dump_descriptor(struct embeng_context *ctx, const struct embeng_cmd *cmd,
			    struct drm_printer *p)
{
	int ret = 0;

	switch (cmd->opcode) {
	case EMBENG_OP_LOOKUP:
		ret = print_lookup(ctx, &cmd->desc, p);
		break;
	case EMBENG_OP_UPDATE:
		if (!(cmd->flags & EMBENG_CMD_DISCARD))
			ret = print_update(ctx, &cmd->desc, p);
		break;
	case EMBENG_OP_ROWS_WRITE:
	case EMBENG_OP_ROWS_READ:
	case EMBENG_OP_ROWS_FILL:
	case EMBENG_OP_SNAPSHOT_READ:
		ret = print_rows(ctx, &cmd->desc, p);
		break;
	}
	if (ret)
		drm_printf(p, "    descriptor error %d\n", ret);
}
