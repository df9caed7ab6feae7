// SPDX-License-Identifier: MIT
/* Firmware images: well-packed ones with some bytes changed, and a device that boots them. */
#include "../../engine/control/firmware.h"
#include "../../engine/hash/sha256.h"
#include "../unit/support/image_help.h"
#include "../unit/support/rig.h"
#include "../unit/support/failing_alloc.h"
#include "builtin_image.h"
#include "fuzz.h"

#define SECTIONS 4u
#define VECTORS 2u

struct image {
	u8 *data;
	size_t length;
};

/* The first section is what a device needs, others may be anything, or what their type says. */
static struct image_section section_of(struct fuzz *f, const struct good_vector *vectors)
{
	static const u32 types[] = {EMBENG_FW_STRINGS, EMBENG_FW_PROGRAMS, EMBENG_FW_PARAMETERS,
				    99};
	u32 kind = fuzz_below(f, 8), flags = fuzz_rarely(f, 8);

	if (kind < 4)
		return (struct image_section){types[kind], flags, good_strings,
					      fuzz_take(f, 1) % sizeof(good_strings)};
	if (kind == 4)
		return (struct image_section){EMBENG_FW_STRINGS, flags, good_strings,
					      sizeof(good_strings)};
	return (struct image_section){EMBENG_FW_SELF_TEST, flags, vectors,
				      (1 + fuzz_below(f, VECTORS)) * sizeof(*vectors)};
}

static struct image pack(struct fuzz *f, struct embeng_fw_parameters *parameters)
{
	struct good_vector vectors[VECTORS] = {good_vector, good_vector};
	struct image_section sections[SECTIONS] = {
		{EMBENG_FW_PARAMETERS, EMBENG_FW_SECTION_MANDATORY, parameters,
		 sizeof(*parameters) - fuzz_near(f, 0) % sizeof(*parameters)}};
	u32 count = 1 + fuzz_below(f, SECTIONS);
	struct image image;
	void *data;

	fuzz_edit(f, vectors, sizeof(vectors), 2);
	for (u32 i = 1; i < count; i++)
		sections[i] = section_of(f, vectors);
	fuzz_check(!image_pack(GOOD_VERSION, "fuzz", sections, count, &data, &image.length),
		   "%u sections", count);
	image.data = data;
	return image;
}

/* So that what was changed inside a section is looked at. */
static void rehash(const struct image *image)
{
	struct embeng_fw_header header;
	struct embeng_fw_section s;

	if (image->length < sizeof(header))
		return;
	memcpy(&header, image->data, sizeof(header));
	for (u64 i = 0; i < header.section_count && i < SECTIONS; i++) {
		u64 at = sizeof(header) + i * header.section_stride;

		if (at > image->length || image->length - at < sizeof(s))
			return;
		memcpy(&s, image->data + at, sizeof(s));
		if (s.offset <= image->length && s.length <= image->length - s.offset)
			sha256_digest(image->data + s.offset, s.length,
				      image->data + at +
					      offsetof(struct embeng_fw_section, sha256));
	}
}

static void resize(struct fuzz *f, struct image *image)
{
	size_t length = (size_t)fuzz_near(f, image->length) % (2 * image->length + 1);
	u8 *data = fuzz_memory(length);

	memcpy(data, image->data, length < image->length ? length : image->length);
	free(image->data);
	*image = (struct image){data, length};
}

static struct image make(struct fuzz *f)
{
	struct embeng_fw_parameters parameters = good_parameters;
	struct image image;

	fuzz_edit(f, &parameters, sizeof(parameters), 2);
	image = pack(f, &parameters);
	resize(f, &image);
	/* The part that a hash does not cover gets more than its share. */
	fuzz_edit(f, image.data, image.length < 384 ? image.length : 384, 3);
	fuzz_edit(f, image.data, image.length, 1);
	if (!fuzz_rarely(f, 8))
		rehash(&image);
	return image;
}

static u32 check(const struct image *image, u64 minimum)
{
	struct firmware out = {.version = ~0ull};
	u64 offset = ~0ull;
	u32 error = firmware_check(image->data, image->length, minimum, &out, &offset);

	fuzz_check(error <= EMBENG_BOOT_ERROR_CONTENT, "error %u", error);
	if (error) {
		fuzz_check(offset <= image->length, "offset %llu of %zu", offset, image->length);
		fuzz_check(out.version == ~0ull, "an output of a refused image");
	} else {
		fuzz_check(offset == ~0ull, "an offset of a good image");
		fuzz_check(out.version >= minimum, "below the minimum");
	}
	return error;
}

/* The image that soft devices boot, as one of a version that nothing forbids. */
static struct image newest_image(void)
{
	static u8 copy[sizeof(embeng_builtin_image)];
	u64 version = ~0ull;

	memcpy(copy, embeng_builtin_image, sizeof(copy));
	memcpy(copy + offsetof(struct embeng_fw_header, version), &version, sizeof(version));
	return (struct image){copy, sizeof(copy)};
}

/* The device says the same, unless a self-test fails, and stays one that boots. */
static void boot(const struct image *image, u32 error, u32 scarce)
{
	struct image newest = newest_image();
	struct rig *rig = rig_power_on(1, 0);
	u32 state, said;

	scarce_begin(scarce);
	state = rig_boot(rig, image->data, image->length);
	said = reg_read32(rig->engine, EMBENG_REG_BOOT_ERROR);
	if (!scarce_end())
		fuzz_check(said == error || (!error && said == EMBENG_BOOT_ERROR_SELF_TEST),
			   "error %u", error);
	if (state != EMBENG_BOOT_RUNNING)
		fuzz_check(reg_read32(rig->engine, EMBENG_REG_QUEUES) == 0, "caps of no firmware");
	rig_warm_reset(rig);
	state = rig_boot(rig, newest.data, newest.length);
	fuzz_check(state == EMBENG_BOOT_RUNNING, "state %u", state);
	rig_free(rig);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {data, size};
	u32 scarce = fuzz_below(&f, 8);
	u64 minimum = fuzz_rarely(&f, 16) ? GOOD_VERSION + fuzz_take(&f, 1) - 1 : 0;
	struct image image = make(&f);
	u32 error = check(&image, minimum);

	if (!minimum && (!error || scarce))
		boot(&image, error, scarce);
	free(image.data);
	return 0;
}
