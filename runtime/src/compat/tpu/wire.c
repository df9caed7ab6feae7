// SPDX-License-Identifier: MIT
/*
 * Packs and unpacks protobufs. The bytes are checked before protobuf-c unpacks them, so that an
 * error names the field and the byte, and fields that this library does not know are listed.
 *
 * Messages and bytes belong to the caller. No lock is needed.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "wire.h"

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* The rest of a message, and where it stands in the whole. */
struct wire {
	const uint8_t *start, *at, *end;
	const char *what;
	struct tpu_unknowns *unknowns;
};

const char *tpu_path(char text[static TPU_PATH], const struct tpu_place *place)
{
	size_t used;

	text[0] = '\0';
	if (!place)
		return text;
	tpu_path(text, place->above);
	used = strlen(text);
	snprintf(text + used, TPU_PATH - used, "%s%s", used ? "." : "", place->name);
	used = strlen(text);
	if (place->index >= 0)
		snprintf(text + used, TPU_PATH - used, "[%ld]", place->index);
	return text;
}

/* "table_descriptor[0].name: byte 12", or how the whole is called. */
#define WHERE_TEXT (TPU_PATH + 32)

static const char *describe_wire_place(char text[static WHERE_TEXT], const struct wire *w,
				       const struct tpu_place *place)
{
	char path[TPU_PATH];

	snprintf(text, WHERE_TEXT, "%.*s: byte %zu", TPU_PATH,
		 place ? tpu_path(path, place) : w->what, (size_t)(w->at - w->start));
	return text;
}

static int read_varint(struct wire *w, const struct tpu_place *place, uint64_t *value)
{
	char text[WHERE_TEXT];
	uint64_t v = 0;

	for (unsigned int i = 0; i < 10 && w->at + i < w->end; i++) {
		uint8_t byte = w->at[i];

		if (i == 9 && byte > 1)
			break;
		v |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (byte & 0x80)
			continue;
		w->at += i + 1;
		*value = v;
		return 0;
	}
	return fail(-EBADMSG, "%s: a number does not end within 64 bits, or where the message ends",
		    describe_wire_place(text, w, place));
}

/* Keys and lengths have 32 bits, and protobuf-c takes no longer way to write them. */
static int read_short(struct wire *w, const struct tpu_place *place, uint64_t *value)
{
	const uint8_t *start = w->at;
	char text[WHERE_TEXT];
	int code = read_varint(w, place, value);

	if (code || w->at - start <= 5)
		return code;
	w->at = start;
	return fail(-EBADMSG, "%s: a key or a length has more than 5 bytes",
		    describe_wire_place(text, w, place));
}

/* Takes @length bytes off. */
static int take_bytes(struct wire *w, const struct tpu_place *place, uint64_t length,
		      const uint8_t **bytes)
{
	char text[WHERE_TEXT];

	if (length > (uint64_t)(w->end - w->at))
		return fail(-EBADMSG, "%s: %llu bytes are said to follow, there are %zu left",
			    describe_wire_place(text, w, place), (unsigned long long)length,
			    (size_t)(w->end - w->at));
	*bytes = w->at;
	w->at += length;
	return 0;
}

/* The value of a field: a number, or bytes. */
struct value {
	uint64_t number;
	const uint8_t *bytes;
	uint64_t length;
};

static int read_wire_value(struct wire *w, const struct tpu_place *place, uint32_t type,
			   struct value *value)
{
	int code = 0;

	*value = (struct value){.bytes = w->at};
	switch (type) {
	case WIRE_VARINT:
		code = read_varint(w, place, &value->number);
		value->length = (uint64_t)(w->at - value->bytes);
		return code;
	case WIRE_BYTES:
		code = read_short(w, place, &value->length);
		break;
	default:
		value->length = type == WIRE_32 ? 4 : 8;
	}
	return code ? code : take_bytes(w, place, value->length, &value->bytes);
}

static int range_fail(const struct wire *w, const struct tpu_place *place, uint64_t number,
		      const char *allowed)
{
	char text[WHERE_TEXT];

	return fail(-ERANGE, "%s: %lld is not %s", describe_wire_place(text, w, place),
		    (long long)number, allowed);
}

static int check_number(const struct wire *w, const struct tpu_place *place,
			const ProtobufCFieldDescriptor *field, uint64_t number)
{
	int64_t n = (int64_t)number;

	if (field->type == PROTOBUF_C_TYPE_BOOL)
		return number <= 1 ? 0 : range_fail(w, place, number, "0 or 1");
	if (field->type == PROTOBUF_C_TYPE_INT64)
		return 0;
	if (n < INT32_MIN || n > INT32_MAX)
		return range_fail(w, place, number, "within 32 bits");
	if (field->type == PROTOBUF_C_TYPE_ENUM &&
	    !protobuf_c_enum_descriptor_get_value(field->descriptor, (int)n))
		return range_fail(w, place, number, "one of the enumerators that there are");
	return 0;
}

static int check_packed(struct wire *w, const struct tpu_place *place,
			const ProtobufCFieldDescriptor *field, const struct value *value)
{
	struct tpu_place element = {place->above, place->name, 0};
	struct wire inner = *w;
	uint64_t number;
	int code = 0;

	inner.at = value->bytes;
	inner.end = value->bytes + value->length;
	for (; !code && inner.at < inner.end; element.index++) {
		code = read_varint(&inner, &element, &number);
		code = code ? code : check_number(&inner, &element, field, number);
	}
	return code;
}

static int check_text(const struct wire *w, const struct tpu_place *place,
		      const struct value *value)
{
	char text[WHERE_TEXT], *copy = malloc(value->length + 1);
	size_t good;
	bool ended;

	if (!copy)
		return fail(-ENOMEM, "no memory to read a text");
	memcpy(copy, value->bytes, value->length);
	copy[value->length] = '\0';
	good = utf8_good(copy);
	ended = !copy[good];
	free(copy);
	if (good == value->length)
		return 0;
	return fail(-EBADMSG, "%s: byte %zu of the text is %s", describe_wire_place(text, w, place),
		    good, ended ? "0" : "not UTF-8");
}

static int check_message(struct wire *w, const struct tpu_place *place,
			 const ProtobufCMessageDescriptor *descriptor);

static int check_inner(struct wire *w, const struct tpu_place *place,
		       const ProtobufCFieldDescriptor *field, const struct value *value)
{
	struct wire inner = *w;

	inner.at = value->bytes;
	inner.end = value->bytes + value->length;
	return check_message(&inner, place, field->descriptor);
}

static uint32_t wire_type_of(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_FLOAT:
		return WIRE_32;
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return WIRE_BYTES;
	default:
		return WIRE_VARINT;
	}
}

static int check_value(struct wire *w, const struct tpu_place *place,
		       const ProtobufCFieldDescriptor *field, uint32_t type,
		       const struct value *value)
{
	uint32_t wanted = wire_type_of(field);
	char text[WHERE_TEXT];

	if (type == WIRE_BYTES && wanted == WIRE_VARINT &&
	    field->label == PROTOBUF_C_LABEL_REPEATED)
		return check_packed(w, place, field, value);
	if (type != wanted)
		return fail(-EBADMSG, "%s: its wire type is %u, it must be %u",
			    describe_wire_place(text, w, place), type, wanted);
	if (field->type == PROTOBUF_C_TYPE_MESSAGE)
		return check_inner(w, place, field, value);
	if (field->type == PROTOBUF_C_TYPE_STRING)
		return check_text(w, place, value);
	return wanted == WIRE_VARINT ? check_number(w, place, field, value->number) : 0;
}

static int add_unknown(struct wire *w, const struct tpu_place *place, uint32_t number,
		       uint32_t type, const struct value *value)
{
	struct tpu_unknowns *u = w->unknowns;
	struct tpu_unknown *fields;
	char text[WHERE_TEXT];

	if (!u)
		return 0;
	if (u->count == TPU_MOST_ELEMENTS)
		return fail(-EBADMSG, "%s: there are more than %u unknown fields",
			    describe_wire_place(text, w, place), TPU_MOST_ELEMENTS);
	fields = reallocarray(u->fields, u->count + 1, sizeof(*fields));
	if (!fields)
		return fail(-ENOMEM, "no memory to tell of unknown fields");
	u->fields = fields;
	fields += u->count++;
	tpu_path(fields->message, place);
	fields->number = number;
	fields->wire_type = type;
	fields->offset = (uint64_t)(value->bytes - w->start);
	fields->length = value->length;
	return 0;
}

/* The fields of a message that were met so far. */
struct seen {
	uint64_t fields;    /* bit by place in the descriptor */
	const char *choice; /* the field of its oneof that was given */
	size_t counts[64];  /* elements of repeated messages */
};

static int check_twice(const struct wire *w, const struct tpu_place *place,
		       const ProtobufCFieldDescriptor *field, size_t at, struct seen *seen)
{
	char text[WHERE_TEXT];

	if (seen->fields >> at & 1)
		return fail(-EBADMSG, "%s: it is given twice", describe_wire_place(text, w, place));
	if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && seen->choice)
		return fail(-EBADMSG, "%s: %s is given already, and only one of them may be",
			    describe_wire_place(text, w, place), seen->choice);
	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		seen->choice = field->name;
	seen->fields |= UINT64_C(1) << at;
	return 0;
}

static int check_field(struct wire *w, const struct tpu_place *above,
		       const ProtobufCMessageDescriptor *descriptor, uint32_t number, uint32_t type,
		       struct seen *seen)
{
	const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(descriptor,
											number);
	struct tpu_place place = {above, field ? field->name : NULL, -1};
	struct value value;
	char text[WHERE_TEXT];
	size_t at;
	int code;

	if (!field) {
		code = read_wire_value(w, above, type, &value);
		return code ? code : add_unknown(w, above, number, type, &value);
	}
	at = (size_t)(field - descriptor->fields);
	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		place.index = (long)seen->counts[at]++;
	if (place.index >= (long)TPU_MOST_ELEMENTS)
		return fail(-ERANGE, "%s: there are more than %u",
			    describe_wire_place(text, w, &place), TPU_MOST_ELEMENTS);
	code = place.index < 0 ? check_twice(w, &place, field, at, seen) : 0;
	if (!code)
		code = read_wire_value(w, &place, type, &value);
	return code ? code : check_value(w, &place, field, type, &value);
}

static int check_message(struct wire *w, const struct tpu_place *place,
			 const ProtobufCMessageDescriptor *descriptor)
{
	struct seen seen = {0};
	char text[WHERE_TEXT];
	int code = 0;

	while (!code && w->at < w->end) {
		const uint8_t *start = w->at;
		uint64_t key;
		uint32_t type;

		code = read_short(w, place, &key);
		if (code)
			break;
		type = key & 7;
		if (type <= WIRE_BYTES || type == WIRE_32) {
			if (key >> 3 && key <= UINT32_MAX) {
				code = check_field(w, place, descriptor, (uint32_t)(key >> 3), type,
						   &seen);
				continue;
			}
		}
		w->at = start;
		code = fail(-EBADMSG, "%s: %llu is no key of a field: number %llu, wire type %u",
			    describe_wire_place(text, w, place), (unsigned long long)key,
			    (unsigned long long)(key >> 3), type);
	}
	return code;
}

/* protobuf-c's allocations are ours, so that a test can let one fail. */
static void *allocate_bytes(void *failed, size_t bytes)
{
	void *memory = malloc(bytes);

	*(bool *)failed |= !memory;
	return memory;
}

static void release_bytes(void *failed, void *memory)
{
	(void)failed;
	free(memory);
}

int tpu_unpack(const ProtobufCMessageDescriptor *descriptor, const char *what, const void *bytes,
	       size_t length, struct tpu_unknowns *unknowns, ProtobufCMessage **message)
{
	struct wire w = {bytes, bytes, (const uint8_t *)bytes + length, what, unknowns};
	bool failed = false;
	ProtobufCAllocator allocator = {allocate_bytes, release_bytes, &failed};
	int code;

	if (length > TPU_MOST_BYTES)
		return fail(-ERANGE, "%s: %zu bytes are more than %u", what, length,
			    TPU_MOST_BYTES);
	code = length ? check_message(&w, NULL, descriptor) : 0;
	if (code)
		return code;
	*message = protobuf_c_message_unpack(descriptor, &allocator, length, bytes);
	if (*message)
		return 0;
	return failed ? fail(-ENOMEM, "no memory for what %s says", what)
		      : fail(-EBADMSG, "%s: protobuf-c does not take it", what);
}

void tpu_unpacked_free(ProtobufCMessage *message)
{
	ProtobufCAllocator allocator = {allocate_bytes, release_bytes, NULL};

	if (message)
		protobuf_c_message_free_unpacked(message, &allocator);
}

int tpu_pack(const ProtobufCMessage *message, void **bytes, size_t *length)
{
	size_t size = protobuf_c_message_get_packed_size(message);
	void *packed = malloc(size + 1);

	if (!packed)
		return fail(-ENOMEM, "no memory for a protobuf of %zu bytes", size);
	*length = protobuf_c_message_pack(message, packed);
	*bytes = packed;
	return 0;
}
