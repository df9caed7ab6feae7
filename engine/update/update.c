/* SPDX-License-Identifier: MIT */
/*
 * Accepts an UPDATE: copies its descriptor and rates, checks that each gradient is as large as the
 * feature's activations, and that all replicas of a step give the same rates. Gradients are not
 * copied. They are read in place when the step is applied. An UPDATE that discards its part has none
 * of these.
 *
 * The copy belongs to the replica's part of the step and lives as long as the model. Called without
 * engine->lock, which is taken to compare the rates of the replicas and to look at memory keys.
 */
#include "update.h"
#include "../f32.h"

struct update *update_new(struct model *model)
{
	struct update *update = model_alloc(model, sizeof(*update));

	if (!update)
		return NULL;
	update->features = model_alloc(model, ((u64)model->blob.engine.feature_count + 1) *
						      sizeof(*update->features));
	update->rates = model_alloc(model, ((u64)model->blob.engine.rate_count + 1) *
						   sizeof(*update->rates));
	if (update->features && update->rates)
		return update;
	update_free(update);
	return NULL;
}

void update_free(struct update *update)
{
	if (!update)
		return;
	port_free(update->features);
	port_free(update->rates);
	port_free(update);
}

static u16 check_update_header(const struct model *model, const struct embeng_update *header,
			       const struct embeng_mem *desc, struct fault *fault)
{
	u32 reserved = header->reserved1[0] | header->reserved1[1] | header->reserved1[2] |
		       (header->flags & ~EMBENG_UPDATE_MULTIPLIER);
	u32 features = model->blob.engine.feature_count, rates = model->blob.engine.rate_count;

	if (reserved)
		return fault_set(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED,
				 EMBENG_NO_INDEX, 0, reserved, 0);
	if (header->model_hash != model->blob.hash)
		return fault_set(fault, EMBENG_STATUS_MODEL_HASH, EMBENG_FIELD_MODEL_HASH,
				 EMBENG_NO_INDEX, 0, header->model_hash, model->blob.hash);
	if (header->feature_count != features)
		return fault_set(fault, EMBENG_STATUS_FEATURE, EMBENG_FIELD_FEATURE_COUNT,
				 EMBENG_NO_INDEX, 0, header->feature_count, features);
	if (header->rate_count != rates)
		return fault_set(fault, EMBENG_STATUS_RATE, EMBENG_FIELD_RATES, EMBENG_NO_INDEX, 0,
				 header->rate_count, rates);
	if (header->flags ? !f32_finite(header->multiplier) : header->multiplier)
		return fault_set(fault, EMBENG_STATUS_NUMBER, EMBENG_FIELD_MULTIPLIER,
				 EMBENG_NO_INDEX, 0, header->multiplier,
				 header->flags ? F32_GREATEST : 0);
	return check_records(header->feature_count, header->feature_stride,
			     sizeof(struct embeng_update_feature), sizeof(*header), desc, fault);
}

static u16 read_update(struct command *command, struct update *update)
{
	struct embeng_update *header = &update->header;
	struct view view;
	u16 status = desc_get(command, sizeof(*header), EMBENG_REGION_DEVICE_READ, &view);

	if (status)
		return status;
	memcpy(header, view.data, sizeof(*header));
	COPIED();
	status = check_update_header(command->context->model, header, &command->cmd.desc,
				     &command->fault);
	for (u64 i = 0; !status && i < header->feature_count; i++)
		memcpy(&update->features[i],
		       (const u8 *)view.data + sizeof(*header) + i * header->feature_stride,
		       sizeof(update->features[i]));
	COPIED();
	region_put(command->context, &view);
	return status;
}

static u16 fetch_rates(struct command *command, struct update *update)
{
	const struct embeng_mem *mem = &update->header.rates;
	u32 count = update->header.rate_count;
	struct view view;
	u16 status = check_length(mem, count, 4, EMBENG_FIELD_RATES, EMBENG_NO_INDEX,
				  &command->fault);

	if (status || !count)
		return status;
	status = region_get(command, mem, EMBENG_REGION_DEVICE_READ, 4, EMBENG_FIELD_RATES,
			    EMBENG_NO_INDEX, &view);
	if (status)
		return status;
	memcpy(update->rates, view.data, count * sizeof(*update->rates));
	COPIED();
	region_put(command->context, &view);
	return blob_check_rates(&command->context->model->blob, update->rates, &command->fault);
}

/*
 * Sums have neither weights nor the counts of what they are made of. A table that takes each occurrence by
 * itself gets one sum for each.
 */
static u16 check_sums(const struct table *table, const struct batch_feature *f, u32 index,
		      struct fault *fault)
{
	u32 flags = table->record.flags & EMBENG_TABLE_BY_FREQUENCY;

	if (!form_is_dense(f->given.form))
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_GRADIENTS, index, 0,
				 f->given.form, EMBENG_FORM_DENSE);
	if (table->kernel != U32_MAX && flags)
		return fault_set(fault, EMBENG_STATUS_FORM, EMBENG_FIELD_TABLE, index, 0, flags, 0);
	return 0;
}

static u16 check_feature_gradients(struct command *command,
				   const struct embeng_update_feature *given, u32 index,
				   const struct batch_feature *f)
{
	const struct model *model = command->context->model;
	const struct table *table = &model->tables[model->blob.features[index].table];
	struct fault *fault = &command->fault;
	u32 known = EMBENG_UPDATE_CHECKED;
	struct view view;
	u16 status;

	if (model->engine->caps.features & EMBENG_CAP_SUMS)
		known |= EMBENG_UPDATE_SUMS;

	if (given->feature != index)
		return fault_set(fault, EMBENG_STATUS_FEATURE, EMBENG_FIELD_FEATURE_INDEX, index, 0,
				 given->feature, index);
	if (given->flags & ~known)
		return fault_set(fault, EMBENG_STATUS_RESERVED, EMBENG_FIELD_RESERVED, index, 0,
				 given->flags, known);
	status = given->flags & EMBENG_UPDATE_SUMS ? check_sums(table, f, index, fault) : 0;
	if (status || !mem_given(&given->gradients))
		return status;
	status = check_length(&given->gradients, f->outputs, 4ull * table->record.dim,
			      EMBENG_FIELD_GRADIENTS, index, fault);
	if (!status)
		status = region_get(command, &given->gradients, EMBENG_REGION_DEVICE_READ, 4,
				    EMBENG_FIELD_GRADIENTS, index, &view);
	if (!status)
		region_put(command->context, &view);
	return status;
}

/* f32 bits; 1 where none is given. */
static u32 multiplier_of(const struct update *update)
{
	return update->header.flags & EMBENG_UPDATE_MULTIPLIER ? update->header.multiplier :
								 F32_ONE;
}

static u16 rates_differ(struct command *command, const struct step *step,
			const struct update *update)
{
	u32 count = update->header.rate_count;

	for (u32 i = 0; i < count; i++) {
		if (step->rates[i] != update->rates[i])
			return fault_set(&command->fault, EMBENG_STATUS_RATE, EMBENG_FIELD_RATES,
					 EMBENG_NO_INDEX, i, update->rates[i], step->rates[i]);
	}
	if (step->multiplier == multiplier_of(update))
		return 0;
	return fault_set(&command->fault, EMBENG_STATUS_RATE, EMBENG_FIELD_RATES, EMBENG_NO_INDEX,
			 count, multiplier_of(update), step->multiplier);
}

/* The first replica of a step says its rates, the others say the same. */
static u16 give_rates(struct command *command, const struct update *update)
{
	struct model *model = command->context->model;
	struct step *step = model_step(model, command->cmd.step);
	u16 status = 0;

	port_lock(model->engine->lock);
	if (step->rates_given) {
		status = rates_differ(command, step, update);
	} else {
		memcpy(step->rates, update->rates,
		       update->header.rate_count * sizeof(*step->rates));
		step->multiplier = multiplier_of(update);
	}
	if (!status)
		step->rates_given++;
	port_unlock(model->engine->lock);
	return status;
}

u16 update_accept(struct command *command)
{
	struct model *model = command->context->model;
	struct part *part = model_part(model, command->cmd.step, command->queue->replica);
	struct update *update = part->gradients;
	u16 status;

	if (command->cmd.flags & EMBENG_CMD_DISCARD)
		return 0;
	status = read_update(command, update);
	if (!status)
		status = fetch_rates(command, update);
	for (u32 i = 0; !status && i < model->blob.engine.feature_count; i++)
		status = check_feature_gradients(command, &update->features[i], i,
						 &part->batch->features[i]);
	if (!status)
		status = give_rates(command, update);
	return status;
}
