// SPDX-License-Identifier: MIT
/* Firmware images: well-packed ones with some bytes changed, signed or not, and devices that boot them. */
#include "../../engine/control/firmware.h"
#include "../../engine/control/signature.h"
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

/* A signature behind the image, of any length and with some bytes of it changed. */
static void sign(struct fuzz *f, struct image *image)
{
	struct embeng_fw_signature head = {.magic = EMBENG_FW_SIGNATURE_MAGIC,
					   .kind = EMBENG_FW_SIGNATURE_PKCS7,
					   .length = 1 + fuzz_below(f, 200),
					   .key_id_length = 1,
					   .key_id = {7}};
	size_t block = (size_t)fuzz_near(f, (sizeof(head) + head.length + 63) & ~63ull) % 70000;
	u8 *data = fuzz_memory(image->length + block);
	u8 *at = data + image->length;

	memcpy(data, image->data, image->length);
	memcpy(at, &head, block < sizeof(head) ? block : sizeof(head));
	if (block > sizeof(head))
		at[sizeof(head)] = (u8)fuzz_take(f, 1);
	fuzz_edit(f, at, block, 3);
	free(image->data);
	*image = (struct image){data, image->length + block};
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
	if (fuzz_below(f, 4))
		sign(f, &image);
	return image;
}

/* Looks where the image ends. A file of which that cannot be said is taken as an image. */
static struct signature find(const struct image *file)
{
	struct signature s = {.image = ~0ull};
	u64 offset = ~0ull;
	u32 error = signature_find(file->data, file->length, &s, &offset);

	if (error) {
		fuzz_check(offset <= file->length, "offset %llu of %zu", offset, file->length);
		fuzz_check(s.image == ~0ull, "an output of a refused file");
		return (struct signature){.image = file->length};
	}
	fuzz_check(offset == ~0ull, "an offset of a good file");
	fuzz_check(s.image + s.block == file->length, "%llu and %llu", s.image, s.block);
	fuzz_check(!s.block || (s.head.length && sizeof(s.head) + s.head.length <= s.block),
		   "%llu of %llu", s.head.length, s.block);
	return s;
}

static u32 check(const struct image *image, u64 length, u64 minimum)
{
	struct firmware out = {.version = ~0ull};
	u64 offset = ~0ull;
	u32 error = firmware_check(image->data, length, minimum, &out, &offset);

	fuzz_check(error <= EMBENG_BOOT_ERROR_CONTENT, "error %u", error);
	if (error) {
		fuzz_check(offset <= length, "offset %llu of %llu", offset, length);
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

/* The keys of the device: every other signature is of one. */
static u32 judge(void *arg, const void *image, u64 length, const void *message, u64 message_length)
{
	u32 sum = 0;

	(void)arg, (void)image;
	for (u64 i = 0; i < message_length; i++)
		sum += ((const u8 *)message)[i];
	fuzz_check(length && message_length, "%llu and %llu", length, message_length);
	return sum & 1 ? EMBENG_BOOT_ERROR_SIGNATURE_KEY : EMBENG_BOOT_ERROR_NONE;
}

/* A device with keys says this of an image that is otherwise good. */
static u32 expected_of_keys(const struct image *image, const struct signature *s)
{
	if (!s->block)
		return EMBENG_BOOT_ERROR_SIGNATURE_MISSING;
	return judge(NULL, image->data, s->image, image->data + s->image + sizeof(s->head),
		     s->head.length);
}

static u32 boot_file(struct rig *rig, const struct image *image, const struct signature *s)
{
	rig_grant(rig, image->data, image->length);
	reg_write64(rig->engine, EMBENG_REG_BOOT_SIGNATURE, (u64)(size_t)image->data + s->image);
	reg_write32(rig->engine, EMBENG_REG_BOOT_SIGNATURE_LENGTH, (u32)s->block);
	return rig_boot(rig, image->data, s->image);
}

/* The device says the same, unless a self-test fails, and stays one that boots. */
static void boot(const struct image *image, const struct signature *s, u32 error, u32 scarce)
{
	struct image newest = newest_image();
	struct rig *rig = rig_power_on(1, 0);
	bool keys = image->length & 64;
	u32 state, said;

	if (keys)
		rig->host.signature = judge;
	if (!error && keys)
		error = expected_of_keys(image, s);
	scarce_begin(scarce);
	state = boot_file(rig, image, s);
	said = reg_read32(rig->engine, EMBENG_REG_BOOT_ERROR);
	if (!scarce_end())
		fuzz_check(said == error || (!error && said == EMBENG_BOOT_ERROR_SELF_TEST),
			   "error %u", error);
	if (state != EMBENG_BOOT_RUNNING)
		fuzz_check(reg_read32(rig->engine, EMBENG_REG_QUEUES) == 0, "caps of no firmware");
	rig_warm_reset(rig);
	rig->host.signature = NULL;
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
	struct signature s = find(&image);
	u32 error = check(&image, s.image, minimum);

	if (!minimum && (!error || scarce))
		boot(&image, &s, error, scarce);
	free(image.data);
	return 0;
}
