// SPDX-License-Identifier: MIT
/*
 * Reads the header of a .npy file (numpy.lib.format, versions 1 to 3), which is a Python dictionary
 * of three known keys. It is read word by word and never evaluated.
 *
 * Nothing is kept but the tensor, in the list of the file.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../text/number.h"
#include "tensor.h"

#define HEADER_MOST 65536

/* The contents of a header. The rank counts dimensions, of which two are kept. */
struct npy_header {
	char descr[8];
	bool fortran;
	unsigned int keys; /* one bit for each key that was there */
	struct tensor tensor;
};

static const char *skip_python_blanks(const char *p)
{
	while (*p == ' ' || *p == '\n' || *p == '\t')
		p++;
	return p;
}

/* A quoted word. Return: what follows, NULL if there is none or it is too long. */
static const char *read_quoted(const char *p, char *word, size_t size)
{
	char quote = *p;
	size_t length;

	if (quote != '\'' && quote != '"')
		return NULL;
	length = strcspn(++p, quote == '\'' ? "'" : "\"");
	if (!p[length] || length >= size)
		return NULL;
	memcpy(word, p, length);
	word[length] = '\0';
	return p + length + 1;
}

static const char *read_truth(const char *p, bool *truth)
{
	*truth = !strncmp(p, "True", 4);
	return *truth ? p + 4 : !strncmp(p, "False", 5) ? p + 5 : NULL;
}

static const char *read_npy_shape(const char *p, struct tensor *t)
{
	if (*p != '(')
		return NULL;
	p = skip_python_blanks(p + 1);
	while (*p != ')') {
		size_t digits = strspn(p, "0123456789");
		uint64_t length;

		if (!digits || number_read(p, digits, 10, &length))
			return NULL;
		if (t->rank < 2)
			t->shape[t->rank] = length;
		t->rank++;
		p = skip_python_blanks(p + digits);
		if (*p == ',')
			p = skip_python_blanks(p + 1);
		else if (*p != ')')
			return NULL;
	}
	return p + 1;
}

static const char *read_npy_entry(const char *p, struct npy_header *h)
{
	char key[16];
	unsigned int bit;

	p = read_quoted(p, key, sizeof(key));
	p = p ? skip_python_blanks(p) : NULL;
	if (!p || *p != ':')
		return NULL;
	p = skip_python_blanks(p + 1);
	bit = !strcmp(key, "descr")	      ? 1
	      : !strcmp(key, "fortran_order") ? 2
	      : !strcmp(key, "shape")	      ? 4
					      : 0;
	if (!bit || h->keys & bit)
		return NULL;
	h->keys |= bit;
	return bit == 1	  ? read_quoted(p, h->descr, sizeof(h->descr))
	       : bit == 2 ? read_truth(p, &h->fortran)
			  : read_npy_shape(p, &h->tensor);
}

static bool read_dictionary(const char *p, struct npy_header *h)
{
	p = skip_python_blanks(p);
	if (*p != '{')
		return false;
	p = skip_python_blanks(p + 1);
	while (*p != '}') {
		p = read_npy_entry(p, h);
		p = p ? skip_python_blanks(p) : NULL;
		if (!p || (*p != ',' && *p != '}'))
			return false;
		if (*p == ',')
			p = skip_python_blanks(p + 1);
	}
	return h->keys == 7 && !*skip_python_blanks(p + 1);
}

static enum tensor_type npy_type(const char *descr)
{
	if (*descr != '<' && *descr != '>')
		return TENSOR_OTHER;
	return !strcmp(descr + 1, "f2")	  ? TENSOR_F16
	       : !strcmp(descr + 1, "f4") ? TENSOR_F32
	       : !strcmp(descr + 1, "f8") ? TENSOR_F64
					  : TENSOR_OTHER;
}

static int list_array(struct tensor_file *f, const char *text, uint64_t at)
{
	struct npy_header h = {0};
	uint64_t elements, bytes;

	if (!read_dictionary(text, &h))
		return tensor_fail(f, -EBADMSG,
				   "its header does not say descr, fortran_order and shape as .npy "
				   "has them: %.100s",
				   text);
	h.tensor.type = npy_type(h.descr);
	h.tensor.at = at;
	h.tensor.stride[0] = h.fortran ? 1 : h.tensor.shape[1];
	h.tensor.stride[1] = h.fortran ? h.tensor.shape[0] : 1;
	f->big_endian = *h.descr == '>';
	if (tensor_is_table(&h.tensor) &&
	    (__builtin_mul_overflow(h.tensor.shape[0], h.tensor.shape[1], &elements) ||
	     __builtin_mul_overflow(elements, tensor_size(h.tensor.type), &bytes) ||
	     bytes != f->bytes - at))
		return tensor_fail(f, -EBADMSG,
				   "has %" PRIu64 " bytes of numbers, which are not %" PRIu64
				   " x %" PRIu64 " of type %s",
				   f->bytes - at, h.tensor.shape[0], h.tensor.shape[1], h.descr);
	return tensor_add(f, "", 0, h.tensor, f->bytes - at);
}

int npy_list(struct tensor_file *f)
{
	unsigned char front[12];
	uint64_t length, at;
	char *text;
	int rc = tensor_bytes(f, 0, front, 10);

	if (rc)
		return rc;
	if (front[6] < 1 || front[6] > 3)
		return tensor_fail(f, -ENOTSUP, "is a .npy of version %u; 1 to 3 are read",
				   front[6]);
	at = front[6] == 1 ? 10 : 12;
	rc = tensor_bytes(f, 0, front, (size_t)at);
	if (rc)
		return rc;
	length = front[8] | (uint64_t)front[9] << 8;
	if (at == 12)
		length |= (uint64_t)front[10] << 16 | (uint64_t)front[11] << 24;
	if (length > HEADER_MOST)
		return tensor_fail(f, -EBADMSG, "its header has %" PRIu64 " bytes; %d are the most",
				   length, HEADER_MOST);
	rc = tensor_text(f, at, length, &text);
	if (rc)
		return rc;
	rc = list_array(f, text, at + length);
	free(text);
	return rc;
}
