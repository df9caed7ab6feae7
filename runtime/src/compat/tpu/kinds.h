/* SPDX-License-Identifier: MIT */
/* Kinds of optimizers, in this library and in the protobuf. */
#ifndef EMBENG_TPU_KINDS_H
#define EMBENG_TPU_KINDS_H

#include "optimizer.h"

enum member_type { MEMBER_NUMBER, MEMBER_SWITCH, MEMBER_TRISTATE, MEMBER_NOT_TRISTATE };

/* One setting: its offset in struct embeng_optimizer and in the message of its kind. */
struct tpu_member {
	enum member_type type;
	size_t ours, theirs;
};

/* A kind of optimizer, as a member of the protobuf's oneof. */
struct tpu_kind {
	enum embeng_optimizer_name ours;
	Tpu__OptimizationParameters__ParametersCase theirs;
	const ProtobufCMessageDescriptor *message;
	size_t count;
	const struct tpu_member *members;
};

/* These translate a kind to the other side. Return: NULL if the other side has no such kind. */
const struct tpu_kind *tpu_kind_of(enum embeng_optimizer_name ours);
const struct tpu_kind *tpu_kind_in(Tpu__OptimizationParameters__ParametersCase theirs);

#endif
