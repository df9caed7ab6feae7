// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps a recording of each device (uapi/embeng_recording.h) in memory, for the file "recording" in
 * debugfs. A recording goes on when the engine is switched off and on.
 *
 * The engine writes with its lock held, one thread at a time. Chunks are only added until the
 * device goes, and a reader sees those below the length that it has read, so no lock is needed. The
 * chunks are freed after the engine and the file have gone.
 */
#include <linux/debugfs.h>
#include <linux/mm.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "emu.h"

#define CHUNK_BYTES (64ull << 10)

static u64 count_chunks(const struct emu *emu)
{
	return DIV_ROUND_UP_ULL(emu->options.record, CHUNK_BYTES);
}

static bool end_recording(struct emu *emu, const char *why)
{
	if (!emu->record.ended)
		dev_warn(emu_dev(emu), "the recording ends here: %s\n", why);
	emu->record.ended = true;
	return false;
}

static bool write_recording(void *host, const void *data, u64 length)
{
	struct emu *emu = host;
	struct emu_record *r = &emu->record;
	u64 at = r->length, n;

	if (!data)
		return end_recording(emu, "there is no memory for it");
	if (r->ended)
		return false;
	if (length > emu->options.record - at)
		return end_recording(emu, "it is as long as the parameter record= allows");
	for (; length; length -= n, data += n, at += n) {
		void **chunk = &r->chunks[at / CHUNK_BYTES];

		n = min(length, CHUNK_BYTES - at % CHUNK_BYTES);
		if (!*chunk)
			*chunk = vmalloc(CHUNK_BYTES);
		if (!*chunk)
			return end_recording(emu, "there is no memory for it");
		memcpy(*chunk + at % CHUNK_BYTES, data, n);
	}
	/* Pairs with the acquire in read_recording(): the chunks come first. */
	smp_store_release(&r->length, at);
	return true;
}

const struct engine_recorder emu_recorder = {
	.write = write_recording,
};

static ssize_t read_recording(struct file *file, char __user *to, size_t count, loff_t *at)
{
	struct emu_record *r = file->private_data;
	/* Pairs with the release in write_recording(): the chunks below it are there. */
	u64 length = smp_load_acquire(&r->length);
	u64 place = *at % CHUNK_BYTES, n;

	if (*at < 0 || *at >= length)
		return 0;
	n = min3((u64)count, length - *at, CHUNK_BYTES - place);
	if (copy_to_user(to, r->chunks[*at / CHUNK_BYTES] + place, n))
		return -EFAULT;
	*at += n;
	return n;
}

static const struct file_operations recording_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = read_recording,
	.llseek = default_llseek,
};

int emu_record_init(struct emu *emu)
{
	if (!emu->options.record)
		return 0;
	emu->record.chunks = kvcalloc(count_chunks(emu), sizeof(void *), GFP_KERNEL);
	return emu->record.chunks ? 0 : -ENOMEM;
}

void emu_record_add(struct emu *emu)
{
	debugfs_create_file("recording", 0400, emu->debugfs, &emu->record, &recording_fops);
}

void emu_record_exit(struct emu *emu)
{
	u64 i;

	for (i = 0; emu->record.chunks && i < count_chunks(emu); i++)
		vfree(emu->record.chunks[i]);
	kvfree(emu->record.chunks);
}
