// SPDX-License-Identifier: MIT
/*
 * Updates an element in f64. The kernels call this for elements that come out infinite or NaN in
 * f32, since a factor on the way left f32 although the result does not (decision 16): a power of a
 * small sum, the square of a small epsilon, a large rate times a gradient. It is made from the same
 * descriptions as the kernels, but is compiled once.
 *
 * The caller is inside an FP section. The functions write only what their arguments name.
 */
#include "math64.h"
#include "optimizers.h"

#define OUTPUTS_MOST (1 + KERNEL_MAX_SLOTS)

/* An update in f64: what kernel_prepare() makes of it, too, and what a row's elements share. */
struct update64 {
	double rate, hyper[KERNEL_MAX_HYPER], prepared[KERNEL_MAX_PREPARED], power;
	double shared[KERNEL_MAX_SHARED];
	u64 step;
};

static double clip_number(double x, double low, double high)
{
	x = x < low ? low : x;
	return x > high ? high : x;
}

static double sign_of_number(double x)
{
	return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
}

static double shrink_number(double x, double by)
{
	double sign = sign_of_number(x);

	return sign * clip_number(sign * x - by, 0.0, __builtin_inf());
}

/*
 * Neither 0 nor infinite, unless @x is 0, since it is a factor or a divisor: times 0, or below 0,
 * it gives 0 however far it lies beyond f64.
 */
static double raise_number(double x, double y)
{
	double power;

	if (y == 0.5)
		return root64(x);
	if (y == 0.0)
		return 1.0;
	power = math64_exp(y * math64_log(x));
	return x > 0.0 ? clip_number(power, __DBL_MIN__, __DBL_MAX__) : power;
}

#define SPREAD(x) ((double)(x))
#define SELECT(m, yes, no) ((m) ? (yes) : (no))
#define SIGN(x) sign_of_number(x)
#define SHRINK(x, by) shrink_number(x, by)
#define CLIP(x, low, high) clip_number(x, low, high)
#define SQRT(x) root64(x)
#define POW(x) raise_number(x, u->power)
#define FROM_ZERO(x) clip_number(x, 0.0, __builtin_inf())

#define DEFINE_UPDATE64(KIND) \
	static void prepare64_##KIND(struct update64 *u) \
	{ \
		const double lr = u->rate, *h = u->hyper; \
		const u64 step = u->step; \
		double *p = u->prepared, *power = &u->power; \
		(void)lr, (void)h, (void)step, (void)p, (void)power; \
		KERNEL_##KIND##_PREPARE \
	} \
	static void update64_##KIND(const struct update64 *u, double *row, double g, double *s) \
	{ \
		const double lr = u->rate, *h = u->hyper, *p = u->prepared, *r = u->shared; \
		double w = *row; \
		(void)lr, (void)h, (void)p, (void)r, (void)g, (void)s; \
		KERNEL_##KIND##_STEP; \
		*row = w; \
	}

KERNEL_OPTIMIZERS(DEFINE_UPDATE64)

#define ROOT(x) root64(x)
#define ROUND(x) (x)

#define DEFINE_SHARED64(KIND) \
	static double share64_##KIND(struct update64 *u, double slot, double mean) \
	{ \
		const double lr = u->rate, *h = u->hyper, *p = u->prepared; \
		double *r = u->shared; \
		(void)lr, (void)h, (void)p; \
		KERNEL_##KIND##_ROW; \
		return slot; \
	}

KERNEL_ROWWISE(DEFINE_SHARED64)

struct functions64 {
	void (*prepare)(struct update64 *u);
	void (*update)(const struct update64 *u, double *row, double g, double *s);
	double (*share)(struct update64 *u, double slot, double mean);
};

#define FUNCTIONS64(KIND) \
	[KERNEL_##KIND] = { .prepare = prepare64_##KIND, .update = update64_##KIND },
#define FUNCTIONS64_ROWWISE(KIND) \
	[KERNEL_##KIND] = { prepare64_##KIND, update64_##KIND, share64_##KIND },

static const struct functions64 functions64[KERNEL_OPTIMIZER_COUNT] = { KERNEL_ELEMENTWISE(
	FUNCTIONS64) KERNEL_ROWWISE(FUNCTIONS64_ROWWISE) };

static struct update64 prepare_in_f64(const struct kernel_update *u)
{
	struct update64 wide = { .rate = u->lr, .step = u->step };

	for (u32 i = 0; i < KERNEL_MAX_HYPER; i++)
		wide.hyper[i] = u->hyper[i];
	functions64[u->optimizer].prepare(&wide);
	return wide;
}

/* Row and slots of one element, in @x; as the kernels do it, but for the rounding. */
static void update_in_f64(const struct kernel_update *u, const struct update64 *wide, double *x,
			  double g)
{
	if (u->flags & KERNEL_GRADIENT_SCALE)
		g = g * u->gradient_multiplier;
	if (u->flags & KERNEL_GRADIENT_CLIP)
		g = clip_number(g, u->gradient_min, u->gradient_max);
	if (u->flags & KERNEL_DECAY_GRADIENT)
		g = g + (double)u->decay * x[0];
	if (u->flags & KERNEL_DECAY)
		x[0] = x[0] -
		       (u->flags & KERNEL_DECAY_TIMES_LR ? wide->rate : 1.0) * u->decay * x[0];
	functions64[u->optimizer].update(wide, &x[0], g, &x[1]);
	if (u->flags & KERNEL_WEIGHT_CLIP)
		x[0] = clip_number(x[0], u->weight_min, u->weight_max);
}

static bool fits_f32(double x)
{
	float rounded = (float)x;

	return rounded - rounded == 0.0f;
}

static bool are_finite(const double *x, u32 count)
{
	bool finite = true;

	for (u32 i = 0; i < count; i++)
		finite &= fits_f32(x[i]);
	return finite;
}

/* Return: false where the slot of one number is not finite, neither in f32 nor in f64. */
static bool share_in_f64(struct update64 *wide, u32 optimizer, const struct kernel_shared *shared)
{
	return fits_f32(shared->slot) &&
	       fits_f32(functions64[optimizer].share(wide, shared->slot, shared->mean));
}

static void take_element(float *const *rows, u64 at, double *x, u32 count)
{
	for (u32 i = 0; i < count; i++)
		x[i] = rows[i][at];
}

void kernel_mend(const struct kernel_update *u, const struct kernel_mend *m)
{
	const u32 count = 1 + kernel_optimizers[u->optimizer].slot_count -
			  KERNEL_OPTIMIZER_IS_ROWWISE(u->optimizer);
	struct update64 wide = prepare_in_f64(u);
	double x[OUTPUTS_MOST];

	if (KERNEL_OPTIMIZER_IS_ROWWISE(u->optimizer) &&
	    !share_in_f64(&wide, u->optimizer, m->shared))
		return;
	for (u64 at = 0; at < m->count; at++) {
		take_element(m->to, at, x, count);
		if (are_finite(x, count))
			continue;
		for (u32 i = 0; i < count; i++)
			x[i] = m->row[i][at];
		if (!are_finite(x, count) || !fits_f32(m->gradients[at]))
			continue;
		update_in_f64(u, &wide, x, m->gradients[at]);
		for (u32 i = 0; are_finite(x, count) && i < count; i++)
			m->to[i][at] = (float)x[i];
	}
}
