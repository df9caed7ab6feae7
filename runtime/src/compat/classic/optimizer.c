// SPDX-License-Identifier: MIT
/*
 * The optimizers of the v1 interface: which there were, their defaults, and the suffixes of their
 * slot variables. The rest of the library does not need these rules.
 *
 * The data is constant; any thread may call.
 */
#include "base/error.h"
#include "classic.h"

bool classic_has_optimizer(enum embeng_optimizer_name kind)
{
	switch (kind) {
	case EMBENG_SGD:
	case EMBENG_ADAGRAD:
	case EMBENG_PROXIMAL_ADAGRAD:
	case EMBENG_ADAM:
	case EMBENG_FTRL:
	case EMBENG_MOMENTUM:
	case EMBENG_RMS_PROP:
		return true;
	default:
		return false;
	}
}

int embeng_classic_optimizer(enum embeng_optimizer_name kind, float learning_rate,
			     struct embeng_optimizer *optimizer)
{
	int ret;

	if (!optimizer)
		return fail(-EINVAL, "embeng_classic_optimizer: optimizer must be given");
	if (!classic_has_optimizer(kind))
		return fail(-EINVAL,
			    "embeng_classic_optimizer: the interface had no optimizer %d; it had "
			    "sgd, adagrad, proximal_adagrad, adam, ftrl, momentum and rms_prop",
			    (int)kind);
	ret = embeng_optimizer_by_name(embeng_optimizer_text(kind), learning_rate, optimizer);
	if (!ret && kind == EMBENG_ADAM)
		optimizer->epsilon = 1e-8f;
	if (!ret && kind == EMBENG_SGD)
		optimizer->use_gradient_accumulation = EMBENG_OFF;
	return ret;
}

const char *embeng_classic_slot_suffix(enum embeng_optimizer_name kind, size_t slot)
{
	static const struct {
		enum embeng_optimizer_name kind;
		const char *suffixes[2];
	} names[] = {
		{EMBENG_ADAGRAD, {"/Adagrad", NULL}},
		{EMBENG_PROXIMAL_ADAGRAD, {"/ProximalAdagrad", NULL}},
		{EMBENG_ADAM, {"/Adam/m", "/Adam/v"}},
		{EMBENG_FTRL, {"/Ftrl", "/Ftrl_1"}},
		{EMBENG_MOMENTUM, {"/Momentum", NULL}},
		{EMBENG_RMS_PROP, {"/RMSProp/ms", "/RMSProp/mom"}},
	};

	for (size_t i = 0; slot < 2 && i < sizeof(names) / sizeof(*names); i++) {
		if (names[i].kind == kind)
			return names[i].suffixes[slot];
	}
	return NULL;
}
