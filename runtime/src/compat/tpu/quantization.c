// SPDX-License-Identifier: MIT
/*
 * Translates simulated quantization of a table to the protobuf and back.
 *
 * Only arguments are touched; no lock is needed.
 */
#include "optimizer.h"

void tpu_quantization_fill(struct tpu_parameters *to, const struct embeng_quantization *q)
{
	if (!q->num_buckets)
		return;
	tpu__simulated_quantization__init(&to->quantization);
	to->quantization.enabled = 1;
	to->quantization.num_buckets = (int32_t)q->num_buckets;
	to->quantization.clipping_limits = tpu_limits_fill(&to->levels, true, q->lower, true,
							   q->upper);
	to->message.simulated_quantization = &to->quantization;
}

int tpu_quantization_read(const struct tpu_place *place, const Tpu__OptimizationParameters *from,
			  struct embeng_quantization *q)
{
	const struct tpu_place here = {place, "simulated_quantization", -1};
	const Tpu__SimulatedQuantization *given = from ? from->simulated_quantization : NULL;
	const Tpu__ClippingLimits *limits = given ? given->clipping_limits : NULL;
	char text[TPU_PATH];

	if (!given || !given->enabled)
		return 0;
	if (given->num_buckets < 2)
		return fail(-ERANGE, "%s.num_buckets: %d is below 2", tpu_path(text, &here),
			    given->num_buckets);
	if (!limits || !limits->lower || !limits->upper)
		return fail(-EINVAL, "%s.clipping_limits: %s is missing; both limits are needed",
			    tpu_path(text, &here), limits && limits->lower ? "upper" : "lower");
	q->num_buckets = given->num_buckets;
	q->lower = limits->lower->value;
	q->upper = limits->upper->value;
	return 0;
}
