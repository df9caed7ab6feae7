// SPDX-License-Identifier: MIT
/*
 * Finds the tensors in a zip of torch.save(): its member data.pkl is a pickle of the object that was
 * saved, whose tensors name members data/KEY with their numbers. A tensor in a dictionary, list or
 * object gets the path to it as its name, such as "state_dict.items.weight".
 *
 * The zip's directory and the pickle live for one call; the tensors go into the list of the file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pickle.h"
#include "tensor.h"
#include "zip.h"

#define PICKLE_MOST (64u << 20)
#define PATH_BYTES 512
#define DEPTH_MOST 64
#define VISITS_MOST 1000000 /* values may be reached by very many ways */

/* @folder: the folder of data.pkl; @visits: number of values that were looked at */
struct torch {
	struct tensor_file *f;
	struct zip zip;
	char *folder;
	size_t visits;
	char path[PATH_BYTES];
};

static bool text_is(const struct pickle_value *v, const char *text)
{
	return v->kind == PICKLE_TEXT && v->length == strlen(text) &&
	       !memcmp(v->text, text, v->length);
}

static bool name_is(const struct pickle_value *v, const char *module, const char *name)
{
	return v->kind == PICKLE_NAME && text_is(v->items[0], module) && text_is(v->items[1], name);
}

/* The arguments of a call of this function of torch._utils, at least @count; else NULL. */
static const struct pickle_value *call_of(const struct pickle_value *v, const char *name,
					  size_t count)
{
	if (v->kind != PICKLE_CALL || !name_is(v->items[0], "torch._utils", name) ||
	    v->items[1]->kind != PICKLE_TUPLE || v->items[1]->count < count)
		return NULL;
	return v->items[1];
}

static int refuse_tensor(struct torch *t, const char *what)
{
	return tensor_fail(t->f, -EBADMSG, "tensor '%.100s' %s; the file is damaged", t->path,
			   what);
}

/* -- a tensor -------------------------------------------------------------- */

static enum tensor_type storage_type(const struct pickle_value *name)
{
	return name_is(name, "torch", "FloatStorage")	   ? TENSOR_F32
	       : name_is(name, "torch", "DoubleStorage")   ? TENSOR_F64
	       : name_is(name, "torch", "HalfStorage")	   ? TENSOR_F16
	       : name_is(name, "torch", "BFloat16Storage") ? TENSOR_BF16
							   : TENSOR_OTHER;
}

/* The tuple ("storage", type, key, device, elements) by which a tensor knows its numbers. */
static const struct pickle_value *storage_of(const struct pickle_value *v)
{
	const struct pickle_value *id = v->kind == PICKLE_PERSISTENT ? v->items[0] : NULL;

	if (!id || id->kind != PICKLE_TUPLE || id->count < 5 || !text_is(id->items[0], "storage") ||
	    id->items[1]->kind != PICKLE_NAME || id->items[2]->kind != PICKLE_TEXT)
		return NULL;
	return id;
}

static bool read_lengths(const struct pickle_value *v, uint64_t out[2])
{
	if (v->kind != PICKLE_TUPLE)
		return false;
	for (size_t i = 0; i < v->count; i++) {
		if (v->items[i]->kind != PICKLE_INTEGER || v->items[i]->integer < 0)
			return false;
		if (i < 2)
			out[i] = (uint64_t)v->items[i]->integer;
	}
	return true;
}

static int find_storage(struct torch *t, const struct pickle_value *id,
			const struct zip_member **member)
{
	char *name = NULL;
	const struct pickle_value *key = id->items[2];
	size_t length = strlen(t->folder) + key->length + sizeof("/data/");

	name = malloc(length);
	if (!name)
		return tensor_fail(t->f, -ENOMEM, "no memory for the name of a member");
	snprintf(name, length, "%s/data/%.*s", t->folder, (int)key->length, key->text);
	*member = zip_find(&t->zip, name);
	free(name);
	if (!*member)
		return refuse_tensor(t, "has no member with its numbers");
	return (*member)->stored
		       ? 0
		       : tensor_fail(t->f, -ENOTSUP,
				     "member '%.100s' is compressed; torch.save() does not "
				     "compress, so save it again with torch",
				     (*member)->name);
}

static int list_tensor(struct torch *t, const struct pickle_value *arguments)
{
	const struct pickle_value *id = storage_of(arguments->items[0]);
	const struct pickle_value *offset = arguments->items[1];
	const struct pickle_value *shape = arguments->items[2], *stride = arguments->items[3];
	const struct zip_member *member = NULL;
	struct tensor tensor = {0};
	uint64_t skipped;
	int rc;

	if (!id || offset->kind != PICKLE_INTEGER || offset->integer < 0 ||
	    !read_lengths(shape, tensor.shape) || !read_lengths(stride, tensor.stride) ||
	    shape->count != stride->count)
		return refuse_tensor(t, "is not described as torch describes one");
	tensor.type = storage_type(id->items[1]);
	tensor.rank = shape->count;
	/* Other tensors than matrices of floats are listed, but never read. */
	if (!tensor_is_table(&tensor))
		return tensor_add(t->f, t->path, strlen(t->path), tensor, 0);
	rc = find_storage(t, id, &member);
	if (rc)
		return rc;
	if (__builtin_mul_overflow((uint64_t)offset->integer, tensor_size(tensor.type), &skipped) ||
	    skipped > member->bytes)
		return refuse_tensor(t, "begins behind the end of its numbers");
	tensor.at = member->at + skipped;
	return tensor_add(t->f, t->path, strlen(t->path), tensor, member->bytes - skipped);
}

/* -- the object that was saved --------------------------------------------- */

static int walk_value(struct torch *t, const struct pickle_value *v, unsigned int depth);

/* Appends a part to the path, for the time of one walk. */
static int walk_into(struct torch *t, const char *part, size_t part_length,
		     const struct pickle_value *v, unsigned int depth)
{
	size_t length = strlen(t->path);
	int rc;

	if (length + part_length + 2 > PATH_BYTES)
		return tensor_fail(t->f, -ENOTSUP,
				   "tensors under '%.100s' have names of more than "
				   "%d bytes",
				   t->path, PATH_BYTES);
	snprintf(t->path + length, PATH_BYTES - length, "%s%.*s", length ? "." : "",
		 (int)part_length, part);
	rc = walk_value(t, v, depth + 1);
	t->path[length] = '\0';
	return rc;
}

static int walk_elements(struct torch *t, const struct pickle_value *v, unsigned int depth)
{
	char number[24];
	int rc = 0;

	for (size_t i = 0; !rc && i < v->count; i++) {
		int length = snprintf(number, sizeof(number), "%zu", i);

		rc = walk_into(t, number, (size_t)length, v->items[i], depth);
	}
	return rc;
}

static int walk_pairs(struct torch *t, const struct pickle_value *v, size_t first,
		      unsigned int depth)
{
	char number[24];
	int rc = 0;

	for (size_t i = first; !rc && i + 1 < v->count; i += 2) {
		const struct pickle_value *key = v->items[i];

		if (key->kind == PICKLE_TEXT) {
			rc = walk_into(t, key->text, key->length, v->items[i + 1], depth);
		} else if (key->kind == PICKLE_INTEGER) {
			snprintf(number, sizeof(number), "%" PRId64, key->integer);
			rc = walk_into(t, number, strlen(number), v->items[i + 1], depth);
		}
	}
	return rc;
}

static int walk_value(struct torch *t, const struct pickle_value *v, unsigned int depth)
{
	const struct pickle_value *arguments;

	if (depth > DEPTH_MOST || ++t->visits > VISITS_MOST)
		return tensor_fail(t->f, -ENOTSUP,
				   "the object in it is nested more than %d deep, or has more than "
				   "%d values; save the state_dict of a model alone",
				   DEPTH_MOST, VISITS_MOST);
	switch (v->kind) {
	case PICKLE_TUPLE:
	case PICKLE_LIST:
		return walk_elements(t, v, depth);
	case PICKLE_DICT:
		return walk_pairs(t, v, 0, depth);
	case PICKLE_CALL:
		arguments = call_of(v, "_rebuild_tensor_v2", 4);
		if (arguments)
			return list_tensor(t, arguments);
		arguments = call_of(v, "_rebuild_parameter", 1);
		return arguments ? walk_value(t, arguments->items[0], depth + 1)
				 : walk_pairs(t, v, 2, depth);
	default:
		return 0;
	}
}

static int walk_pickle(struct torch *t, const char *bytes, size_t length)
{
	struct pickle pickle;
	char why[PICKLE_WHY];
	int rc = pickle_read(&pickle, bytes, length, why);

	rc = rc ? tensor_fail(t->f, rc, "%s/data.pkl: %s", t->folder, why)
		: walk_value(t, pickle.top, 0);
	pickle_free(&pickle);
	return rc;
}

/* -- the zip --------------------------------------------------------------- */

static int read_byte_order(struct torch *t)
{
	const struct zip_member *m;
	char name[PATH_BYTES], word[4];
	int rc;

	snprintf(name, sizeof(name), "%s/byteorder", t->folder);
	m = zip_find(&t->zip, name);
	if (!m || !m->stored || m->bytes < 3)
		return 0;
	rc = tensor_bytes(t->f, m->at, word, 3);
	t->f->big_endian = !rc && !memcmp(word, "big", 3);
	return rc;
}

static int list_folder(struct torch *t, const struct zip_member *m)
{
	char *bytes;
	int rc = read_byte_order(t);

	if (rc)
		return rc;
	if (!m->stored || m->bytes > PICKLE_MOST)
		return tensor_fail(
			t->f, -ENOTSUP,
			"%s is compressed or has more than %u bytes; save the state_dict "
			"of a model with torch.save()",
			m->name, PICKLE_MOST);
	rc = tensor_text(t->f, m->at, m->bytes, &bytes);
	if (rc)
		return rc;
	rc = walk_pickle(t, bytes, (size_t)m->bytes);
	free(bytes);
	return rc;
}

static int list_zip(struct torch *t)
{
	static const char end[] = "/data.pkl";
	int rc;

	for (size_t i = 0; i < t->zip.count; i++) {
		const struct zip_member *m = &t->zip.list[i];
		const char *slash = strchr(m->name, '/');

		if (!slash || strcmp(slash, end) != 0)
			continue;
		t->folder = strndup(m->name, (size_t)(slash - m->name));
		if (!t->folder)
			return tensor_fail(t->f, -ENOMEM, "no memory for the name of a member");
		rc = list_folder(t, m);
		free(t->folder);
		return rc;
	}
	return tensor_fail(
		t->f, -ENOTSUP,
		"is a zip, but not one of torch.save(): it has no FOLDER/data.pkl. Save the "
		"arrays of a .npz one by one with numpy.save()");
}

int torch_list(struct tensor_file *f)
{
	struct torch t = {.f = f};
	int rc = zip_list(f, &t.zip);

	rc = rc ? rc : list_zip(&t);
	zip_free(&t.zip);
	return rc;
}
