// SPDX-License-Identifier: MIT
/*
 * Maps the ids and weights of a PARTITION's features, and copies and checks their row offsets. A
 * feature with one id for each sample is recognised here, since its offsets need not be kept.
 *
 * Ids and weights stay mapped until pcsr_input_release(); the offsets lie in the context's memory
 * for partitioning. Called without engine->lock, which mapping and releasing take inside.
 */
#include "partition.h"

#define BLOCK 128u

static u16 report_no_input_memory(struct pcsr_job *job, u64 bytes)
{
	return fault_set(&job->command->fault, EMBENG_STATUS_NO_MEMORY, EMBENG_FIELD_DESC,
			 EMBENG_NO_INDEX, 0, bytes, 0);
}

static u16 refuse_sample(struct pcsr_job *job, u32 feature, u64 element, u64 value, u64 limit)
{
	return fault_set(&job->command->fault, EMBENG_STATUS_OFFSETS, EMBENG_FIELD_ROW_OFFSETS,
			 feature, element, value, limit);
}

/* Samples of the ids, to where each sample's ids begin. */
static u16 offsets_of_samples(struct pcsr_job *job, u32 index, const void *given, u64 *offsets)
{
	const struct embeng_partition_feature *g = job->features[index].given;
	u64 block[BLOCK], sample = 0, left = PIECE_ROWS;

	offsets[0] = 0;
	for (u64 first = 0; first < g->id_count; first += BLOCK) {
		u64 count = g->id_count - first < BLOCK ? g->id_count - first : BLOCK;

		ids_widen(block, (const u8 *)given + first * g->offset_width, count,
			  g->offset_width);
		if (first && !(first % PIECE_ROWS) && piece_over(job->command))
			return abort_command(job->command);
		for (u64 i = 0; i < count; i++) {
			if (block[i] >= g->sample_count)
				return refuse_sample(job, index, first + i, block[i],
						     g->sample_count);
			if (block[i] < sample)
				return refuse_sample(job, index, first + i, block[i], sample);
			while (sample < block[i]) {
				offsets[++sample] = first + i;
				if (piece_step(job->command, &left))
					return abort_command(job->command);
			}
		}
	}
	while (sample < g->sample_count && !piece_step(job->command, &left))
		offsets[++sample] = g->id_count;
	return 0;
}

static bool has_weights(const struct pcsr_feature *f)
{
	return mem_given(&f->given->weights);
}

/* The gain of an id that is its sample's only one needs no combiner. */
static bool stands_alone(const struct pcsr_feature *f)
{
	return !has_weights(f) || f->given->combiner == EMBENG_COMBINER_SUM;
}

/* Whether so many numbers from @first on are their own places; below 2^32 where they are narrow. */
static bool are_places_narrow(const u32 *given, u32 first, u32 count)
{
	u32 other = 0;

	for (u32 i = 0; i < count; i++)
		other |= given[i] ^ (first + i);
	return !other;
}

static bool are_places_wide(const u64 *given, u64 first, u32 count)
{
	u64 other = 0;

	for (u32 i = 0; i < count; i++)
		other |= given[i] ^ (first + i);
	return !other;
}

static bool are_places(const void *given, u64 first, u32 count, u32 width)
{
	return width == 4 ? are_places_narrow((const u32 *)given + first, (u32)first, count) :
			    are_places_wide((const u64 *)given + first, first, count);
}

/* True if each sample of a CSR or COO input has one id, as with DENSE. */
static bool one_each(struct command *command, const struct embeng_partition_feature *g,
		     const void *given)
{
	u64 count = g->form == EMBENG_FORM_COO ? g->id_count : g->sample_count + 1;

	if (g->id_count != g->sample_count || count > U32_MAX)
		return false;
	for (u64 first = 0, length; first < count; first += length) {
		length = count - first < BLOCK ? count - first : BLOCK;
		if (!are_places(given, first, (u32)length, g->offset_width) ||
		    (first && !(first % PIECE_ROWS) && piece_over(command)))
			return false;
	}
	return true;
}

static u16 copy_offsets(struct pcsr_job *job, u32 index, u64 *offsets)
{
	struct pcsr_feature *f = &job->features[index];
	const struct embeng_partition_feature *g = f->given;
	struct view view = { 0 };
	u16 status;

	f->offsets = NULL;
	if (g->form == EMBENG_FORM_DENSE)
		return 0;
	f->offsets = offsets;
	status = mem_get(job->command, &g->offsets, EMBENG_REGION_DEVICE_READ, g->offset_width,
			 EMBENG_FIELD_ROW_OFFSETS, index, &view);
	if (status)
		return status;
	if (stands_alone(f) && one_each(job->command, g, view.data)) {
		f->offsets = NULL;
	} else if (g->form == EMBENG_FORM_COO) {
		status = offsets_of_samples(job, index, view.data, offsets);
	} else if (!ids_widen_all(job->command, offsets, view.data, g->sample_count + 1,
				  g->offset_width)) {
		status = ids_check_offsets(job->command, offsets, g->sample_count, g->id_count,
					   index, &job->command->fault);
	}
	if (command_is_cut(job->command))
		status = abort_command(job->command);
	region_put(job->command->context, &view);
	return status;
}

/* Gains that a combiner makes; without one they are the weights themselves, or 1. */
static u64 gains_of(const struct pcsr_feature *f)
{
	if (f->given->form == EMBENG_FORM_DENSE || f->given->combiner == EMBENG_COMBINER_SUM)
		return 0;
	return has_weights(f) ? f->given->id_count : f->given->sample_count;
}

static u16 resolve_feature(struct pcsr_job *job, u32 index, u64 *offsets, u32 *gains)
{
	struct pcsr_feature *f = &job->features[index];
	const struct embeng_partition_feature *g = f->given;
	u16 status = copy_offsets(job, index, offsets);

	if (!status)
		status = mem_get(job->command, &g->ids, EMBENG_REGION_DEVICE_READ, g->id_width,
				 EMBENG_FIELD_IDS, index, &f->ids_view);
	if (!status)
		status = mem_get(job->command, &g->weights, EMBENG_REGION_DEVICE_READ, 4,
				 EMBENG_FIELD_WEIGHTS, index, &f->weights_view);
	f->each = has_weights(f);
	f->gains = f->offsets && gains_of(f) ? gains : f->weights_view.data;
	f->samples = g->sample_count / job->device_cores;
	f->row = (u32)job->rows;
	job->rows += f->samples;
	job->ids += g->id_count;
	return status;
}

/* Offsets and gains of all features stand one behind the other. */
static int make_input_room(struct pcsr_job *job, const struct pcsr_call *call, u64 **offsets,
			   u32 **gains)
{
	u64 samples = 0, made = 0;

	job->features = pcsr_memory(job, PCSR_FEATURES, call->given.feature_count,
				    sizeof(*job->features));
	if (!job->features)
		return -1;
	memset(job->features, 0, call->given.feature_count * sizeof(*job->features));
	for (u32 i = 0; i < call->given.feature_count; i++) {
		job->features[i].given = &call->features[i];
		samples += call->features[i].sample_count + 1;
		made += gains_of(&job->features[i]);
	}
	*offsets = pcsr_memory(job, PCSR_OFFSETS, samples, sizeof(**offsets));
	*gains = pcsr_memory(job, PCSR_GAINS, made, sizeof(**gains));
	return *offsets && *gains ? 0 : -1;
}

u16 pcsr_input(struct pcsr_job *job, const struct pcsr_call *call)
{
	u64 *offsets;
	u32 *gains;
	u16 status = 0;

	if (make_input_room(job, call, &offsets, &gains))
		return report_no_input_memory(job, 0);
	for (u32 i = 0; !status && i < call->given.feature_count; i++) {
		status = resolve_feature(job, i, offsets, gains);
		offsets += call->features[i].sample_count + 1;
		gains += gains_of(&job->features[i]);
	}
	return status;
}

void pcsr_input_release(struct pcsr_job *job)
{
	for (u32 i = 0; job->features && i < job->given->feature_count; i++) {
		region_put(job->command->context, &job->features[i].ids_view);
		region_put(job->command->context, &job->features[i].weights_view);
	}
}
