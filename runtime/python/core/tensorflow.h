/* SPDX-License-Identifier: MIT */
/*
 * The files of TensorFlow's operators share this: our own declarations of the parts of TensorFlow's C
 * API that they call, and the operators' kernels. Its functions are found when the operators are
 * registered; the module is not linked against TensorFlow.
 */
#ifndef EMBENG_PYTHON_TENSORFLOW_H
#define EMBENG_PYTHON_TENSORFLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embeng.h"

/* Objects of TensorFlow, of which only pointers are known. */
struct tf_status;
struct tf_tensor;
struct tf_op_builder;
struct tf_kernel_builder;
struct tf_shape_context;
struct tf_construction; /* the attributes of a kernel that is made */
struct tf_context;	/* the inputs and outputs of a kernel that runs */
struct raw_feature;

/* Numbers of TensorFlow's types and codes of errors that are used here. */
enum { TF_TYPE_FLOAT = 1, TF_TYPE_DOUBLE = 2, TF_TYPE_INT32 = 3, TF_TYPE_INT64 = 9 };
enum {
	TF_CODE_OK = 0,
	TF_CODE_CANCELLED = 1,
	TF_CODE_INVALID_ARGUMENT = 3,
	TF_CODE_DEADLINE_EXCEEDED = 4,
	TF_CODE_NOT_FOUND = 5,
	TF_CODE_PERMISSION_DENIED = 7,
	TF_CODE_RESOURCE_EXHAUSTED = 8,
	TF_CODE_FAILED_PRECONDITION = 9,
	TF_CODE_UNIMPLEMENTED = 12,
	TF_CODE_INTERNAL = 13,
	TF_CODE_UNAVAILABLE = 14,
};

/* Functions of TensorFlow. tensorflow.c has their names, and sets all of them before any is called. */
struct tf_functions {
	struct tf_status *(*new_status)(void);
	void (*delete_status)(struct tf_status *status);
	void (*set_status)(struct tf_status *status, int code, const char *text);
	int (*get_code)(const struct tf_status *status);
	const char *(*get_message)(const struct tf_status *status);
	void (*set_payload)(struct tf_status *status, const char *key, const char *value);

	struct tf_op_builder *(*new_op)(const char *name);
	void (*add_attr)(struct tf_op_builder *op, const char *spec);
	void (*add_input)(struct tf_op_builder *op, const char *spec);
	void (*add_output)(struct tf_op_builder *op, const char *spec);
	void (*set_stateful)(struct tf_op_builder *op, bool stateful);
	void (*set_shape_function)(struct tf_op_builder *op,
				   void (*function)(struct tf_shape_context *context,
						    struct tf_status *status));
	void (*register_op)(struct tf_op_builder *op, struct tf_status *status);
	void (*set_unknown_shape)(struct tf_shape_context *context, struct tf_status *status);

	struct tf_kernel_builder *(*new_kernel)(const char *op, const char *device,
						void *(*create)(struct tf_construction *),
						void (*compute)(void *kernel,
								struct tf_context *context),
						void (*free)(void *kernel));
	void (*register_kernel)(const char *name, struct tf_kernel_builder *kernel,
				struct tf_status *status);
	void (*get_attr_size)(struct tf_construction *made, const char *name, int32_t *list_size,
			      int32_t *total_size, struct tf_status *status);
	void (*get_attr_int)(struct tf_construction *made, const char *name, int64_t *value,
			     struct tf_status *status);
	void (*get_attr_ints)(struct tf_construction *made, const char *name, int64_t *values,
			      int most, struct tf_status *status);
	void (*get_attr_texts)(struct tf_construction *made, const char *name, char **values,
			       size_t *lengths, int most, void *storage, size_t bytes,
			       struct tf_status *status);
	void (*fail_construction)(struct tf_construction *made, struct tf_status *status);

	int (*num_inputs)(struct tf_context *context);
	void (*get_input)(struct tf_context *context, int at, struct tf_tensor **tensor,
			  struct tf_status *status);
	struct tf_tensor *(*allocate_output)(struct tf_context *context, int at, int type,
					     const int64_t *shape, int rank, size_t bytes,
					     struct tf_status *status);
	void (*fail_context)(struct tf_context *context, struct tf_status *status);

	int (*tensor_type)(const struct tf_tensor *tensor);
	int (*num_dims)(const struct tf_tensor *tensor);
	int64_t (*dim)(const struct tf_tensor *tensor, int at);
	int64_t (*element_count)(const struct tf_tensor *tensor);
	void *(*tensor_data)(const struct tf_tensor *tensor);
	void (*delete_tensor)(struct tf_tensor *tensor);
};

extern struct tf_functions tf;

/* -- tensorflow_settings.c: what a kernel was made with ------------------------ */

/* How an input is given, as embeng/tf/_forms.py has it: the attribute "forms". */
enum {
	FORM_DENSE,   /* ids of any shape, each a sample of its own */
	FORM_EVEN,    /* a matrix: a bag a row */
	FORM_SPLITS,  /* ids; [samples + 1] */
	FORM_LENGTHS, /* ids; [samples] */
	FORM_SPARSE,  /* ids; indices [ids][rank], then the shape [rank] */
	FORM_COUNT,
};
#define FORM_MASK 7
/*
 * Flags beside the form: each id has a weight; each id has a row of activations of its own; ids that
 * equal the feature's entry of the attribute "paddings" are none.
 */
#define FORM_WEIGHTED 8
#define FORM_SEQUENCE 16
#define FORM_PADDED 32

struct tf_feature {
	int index, form;
	bool weighted, sequence, padded;
	int64_t padding;
	int bounds_at, weights_at,
		weight_number; /* inputs of the operator; among those with weights */
	int64_t dim, sequence_length;
};

/* Settings of the operators of steps alone (tensorflow_steps.c). */
struct tf_step {
	int64_t mode, timeout_ns;
	int32_t replica_count, shape_count;
	int64_t *replicas, *samples; /* enqueue: [replica_count], [count] */
	int64_t *ranks, *dims;	     /* dequeue: [shape_count], and all shapes in one list */
};

/* A list of texts of an attribute. */
struct tf_texts {
	char *storage;
	const char **items;
	size_t count;
};

/* Settings of the operators of entries alone (tensorflow_entries.c), whose step.samples is [count]. */
struct tf_lists {
	struct tf_texts names; /* features where entries are listed, tables else */
	struct tf_texts tables;
	int64_t *rows, *combiners; /* [tables.count] */
};

struct tf_kernel {
	int64_t handle;
	uint32_t replica;
	size_t count;
	struct tf_feature *features;
	int gradients_at;      /* the first input behind those of the features */
	struct tf_texts rates; /* their names */
	struct tf_step step;
	struct tf_lists lists;
};

/* Reads attributes into a new kernel. Return: 0, or -1 with an error. */
typedef int (*tf_reader)(struct tf_kernel *kernel, struct tf_construction *made,
			 struct tf_status *status);

/* Makes a kernel with @read, and has TensorFlow's construction fail where that fails. */
struct tf_kernel *tf_kernel_make(struct tf_construction *made, tf_reader read);
/* Frees it; NULL is fine. */
void tf_kernel_free(void *kernel);

/* Readers of attributes. tf_read_features() reads those of lookups, tf_read_update() also of updates. */
int tf_read_features(struct tf_kernel *kernel, struct tf_construction *made,
		     struct tf_status *status);
int tf_read_update(struct tf_kernel *kernel, struct tf_construction *made,
		   struct tf_status *status);
/* Forms of features, which no engine is asked about; "features" and "forms" have one entry for each. */
int tf_read_forms(struct tf_kernel *kernel, struct tf_construction *made, struct tf_status *status);
int tf_read_replica(struct tf_kernel *kernel, struct tf_construction *made,
		    struct tf_status *status);
/* Likewise; "features" alone, without forms. */
int tf_read_indices(struct tf_kernel *kernel, struct tf_construction *made,
		    struct tf_status *status);
/* Asks the engine for the columns of a feature's rows, and the rows of a sequence. */
int tf_measure_feature(struct tf_feature *feature, int64_t handle, struct tf_status *status);
/* Refuses padding, for operators that have none. */
int tf_refuse_padding(const struct tf_kernel *kernel, struct tf_status *status);
/* Refuses weights and padding of ids that are samples of their own. */
int tf_check_positions(const struct tf_kernel *kernel, struct tf_status *status);
/* A list of texts. */
int tf_read_texts(struct tf_construction *made, const char *name, struct tf_texts *to,
		  struct tf_status *status);
/* The names of rates. */
int tf_read_rates(struct tf_kernel *kernel, struct tf_construction *made, struct tf_status *status);
/* A list of numbers, to be freed. @count: its length, or -1 for any, which is then set. */
int64_t *tf_read_numbers(struct tf_construction *made, const char *name, int32_t *count,
			 struct tf_status *status);

/* Set an error of the operator, of the library, or for want of memory. Return: -1. */
int tf_refuse(struct tf_status *status, const char *text);
int tf_report(struct tf_status *status, const struct embeng_error *error);
int tf_report_no_memory(struct tf_status *status);
/* Likewise, of steps: an invalid argument, whose sentence has the name of embeng's exception before it. */
int tf_report_step(struct tf_status *status, const struct embeng_error *error);
/* Notes the name of the exception of an errno. */
void tf_name_error(int number, const char *name);

static inline bool tf_failed(const struct tf_status *status)
{
	return tf.get_code(status) != TF_CODE_OK;
}

/* -- tensorflow_kernels.c: lookups and updates ----------------------------------- */

/* One run of a kernel: inputs and outputs, which are held until its end. */
struct tf_run {
	const struct tf_kernel *kernel;
	struct tf_context *context;
	struct tf_status *status;
	struct tf_tensor **inputs, **outputs;
	int input_count, output_count;
	struct raw_feature *features;
};

/* Takes @inputs inputs, which may be fewer than there are. Return: 0, or -1 with an error. */
int tf_run_begin(struct tf_run *run, int inputs, int outputs);
/* Frees what a run has, and has it fail if its status is an error. */
void tf_run_end(struct tf_run *run);
/* Takes the inputs of features, behind which are @more. Those behind @given of them are not taken. */
int tf_take_forms(struct tf_run *run, size_t more, size_t given, size_t outputs);
/* Takes the gradients of all features, from the input kernel->gradients_at on. */
void tf_take_gradients(struct tf_run *run);
/* Takes a number for each rate, from the input @at on. */
int tf_take_rates(struct tf_run *run, int at, struct embeng_rate *rates);
/* Makes an output of numbers of 4 bytes. Return: NULL with an error. */
void *tf_place_numbers(struct tf_run *run, int at, int type, const int64_t *shape, int rank,
		       size_t elements);
/* Likewise, of f32. */
float *tf_place_output(struct tf_run *run, int at, const int64_t *shape, int rank, size_t elements);

void *tf_make_reader(struct tf_construction *made);
void *tf_make_updater(struct tf_construction *made);
void tf_compute_lookup(void *kernel, struct tf_context *context);
void tf_compute_update(void *kernel, struct tf_context *context);
void tf_compute_weight_gradients(void *kernel, struct tf_context *context);
void tf_compute_gradient_norm(void *kernel, struct tf_context *context);

/* -- tensorflow_operators.c -------------------------------------------------------- */

/* One operator: its name, its attributes, inputs and outputs, each list ended by NULL, its kernel. */
struct tf_operator {
	const char *name;
	const char *const *attrs, *const *inputs, *const *outputs;
	void *(*create)(struct tf_construction *made);
	void (*compute)(void *kernel, struct tf_context *context);
};

extern const struct tf_operator tf_operators[];
extern const size_t tf_operator_count;

/* -- tensorflow_steps.c: enqueue, dequeue, apply gradients ----------------------- */

void *tf_make_enqueue(struct tf_construction *made);
void tf_compute_enqueue(void *kernel, struct tf_context *context);
void *tf_make_dequeue(struct tf_construction *made);
void tf_compute_dequeue(void *kernel, struct tf_context *context);
void *tf_make_apply(struct tf_construction *made);
void tf_compute_apply(void *kernel, struct tf_context *context);

/* -- tensorflow_entries.c: lists of entries, their lookups and updates ------------ */

void *tf_make_list_entries(struct tf_construction *made);
void tf_compute_list_entries(void *kernel, struct tf_context *context);
void *tf_make_lookup_entries(struct tf_construction *made);
void tf_compute_lookup_entries(void *kernel, struct tf_context *context);
void *tf_make_update_entries(struct tf_construction *made);
void tf_compute_update_entries(void *kernel, struct tf_context *context);

#endif
