/* SPDX-License-Identifier: MIT */
/* Kinds of optimizers, with us and in the protobuf. */
#ifndef EMBENG_TPU_KINDS_H
#define EMBENG_TPU_KINDS_H

#include "optimizer.h"

enum member_type { MEMBER_NUMBER, MEMBER_SWITCH, MEMBER_TRISTATE, MEMBER_NOT_TRISTATE };

/* One setting: where it stands in struct embeng_optimizer, and in the message of its kind. */
struct tpu_member {
	enum member_type type;
	size_t ours, theirs;
};

/* A kind as the oneof has it. */
struct tpu_kind {
	enum embeng_optimizer_name ours;
	Tpu__OptimizationParameters__ParametersCase theirs;
	const ProtobufCMessageDescriptor *message;
	size_t count;
	const struct tpu_member *members;
};

/* NULL: the other side has no such kind. */
const struct tpu_kind *tpu_kind_of(enum embeng_optimizer_name ours);
const struct tpu_kind *tpu_kind_in(Tpu__OptimizationParameters__ParametersCase theirs);

#endif
