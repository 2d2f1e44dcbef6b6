/* tg_io.h: state dictionaries and files of models and data, built on tg.h alone.
 *
 * A file is a 1-D u8 tensor, tg_from_file(ctx, path, TG_U8, TG_SHAPE(-1)), and every reader takes one. The
 * tensors that a reader returns are views of the file, so nothing is read before it is needed, and a
 * reader also works on a file inside an archive. The functions whose names end in _file take a path. The
 * contents of a file are not trusted: each size, offset and count is checked against the bytes there are
 * before it is used. A file of the wrong format is TG_ERR_VALUE, with its name and what is wrong; a file
 * that cannot be read is TG_ERR_IO; a feature of the format that is not supported is refused by name. A
 * TgState and a TgValue own the tensors that they were made with, and must be freed before the context is
 * closed. */
#ifndef TG_IO_H
#define TG_IO_H
#include "tg.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- state dictionaries: names -> tensors, in the order in which they were put. They refer to tensors of
 * any shape and dtype, unchanged. Errors: TG_ERR_NOMEM, TG_ERR_VALUE (a tensor of another context). */
TG_API TgState *tg_state_new(TgContext *ctx);
TG_API void tg_state_free(TgState *s); /* ends the tensors that readers made; s may be NULL */
/* Adds a tensor, which stays yours and must outlive s. If the name exists already, its tensor is replaced.
 * Layers have tg_linear_state and so on (tg_nn.h). */
TG_API TgStatus tg_state_put(TgState *s, const char *name, TgTensor *t);
/* NULL: no such name, which is not an error */
TG_API TgTensor *tg_state_get(const TgState *s, const char *name);
/* Removes the name. The tensor is yours from now on, and kept (tg_release ends it). NULL: no such name. */
TG_API TgTensor *tg_state_remove(TgState *s, const char *name);
TG_API size_t tg_state_count(const TgState *s); /* number of names in it */
/* name may be NULL. NULL: i is past the end */
TG_API TgTensor *tg_state_at(const TgState *s, size_t i, const char **name);
/* tg_state_count tensors, in order; valid until s changes */
TG_API TgTensor *const *tg_get_parameters(const TgState *s);

/* ---- what a file says besides tensors: a tree of values. NULL means no value; every question about it is
 * answered with 0 or NULL, with no error but TG_ERR_NOMEM. Tensors have the shape and dtype that the file
 * gives them. */
typedef struct TgValue TgValue;

typedef enum TgKind {
  TG_KIND_NONE = 0,
  TG_KIND_BOOL,
  TG_KIND_INT,
  TG_KIND_FLOAT,
  TG_KIND_STRING,
  TG_KIND_LIST,
  TG_KIND_MAP,
  TG_KIND_TENSOR,
  TG_KIND_OTHER /* what the file names but nothing here needs, such as torch.device */
} TgKind;

TG_API TgKind tg_value_kind(const TgValue *v);
TG_API int64_t tg_value_int(const TgValue *v);  /* an int or bool; a u64 above INT64_MAX wraps */
TG_API double tg_value_float(const TgValue *v); /* a float, int or bool */
/* ended by a 0 byte; nbytes may be NULL */
TG_API const char *tg_value_string(const TgValue *v, size_t *nbytes);
TG_API TgTensor *tg_value_tensor(const TgValue *v);             /* of a tensor */
TG_API size_t tg_value_count(const TgValue *v);                 /* of a list or a map */
TG_API const TgValue *tg_value_at(const TgValue *v, size_t i);  /* of a list or a map; NULL past the end */
TG_API const TgValue *tg_value_key(const TgValue *v, size_t i); /* of a map: a string or an int */
TG_API const TgValue *tg_value_get(const TgValue *v, const char *key); /* of a map */
/* a tree that a reader returned, with its tensors. root may be NULL */
TG_API void tg_value_free(TgValue *root);
/* ---- making a tree, as a reader of a format of your own does. tg_value_new: an empty TG_KIND_MAP or
 * TG_KIND_LIST. tg_value_put_* add a value to a tree that it or a reader returned: to a map behind its other
 * values (of equal keys tg_value_get finds the first), to a list, whose values have key NULL, at its end.
 * Texts are copied. A tensor stays yours, and is kept until the tree is freed. A tree that is put becomes
 * part of `to`: its own pointer may no longer be used, nor freed. Errors: TG_ERR_NOMEM (also if `to` is
 * NULL); TG_ERR_VALUE: `to` is no map or list, a key is missing or too many, there is no tensor or tree, or
 * it is of another context; what was to be put is then still yours. */
TG_API TgValue *tg_value_new(TgContext *ctx, TgKind kind);
TG_API TgStatus tg_value_put_int(TgValue *to, const char *key, int64_t v);
TG_API TgStatus tg_value_put_bool(TgValue *to, const char *key, bool v);
TG_API TgStatus tg_value_put_float(TgValue *to, const char *key, double v);
TG_API TgStatus tg_value_put_string(TgValue *to, const char *key, const char *s, size_t nbytes);
TG_API TgStatus tg_value_put_tensor(TgValue *to, const char *key, TgTensor *t);
TG_API TgStatus tg_value_put_tree(TgValue *to, const char *key, TgValue *tree);
/* The tensors of a tree under dotted names, made of keys of maps and numbers of lists; other values are
 * left out. The tensors stay the tree's. prefix may be NULL. */
TG_API TgState *tg_get_state(TgContext *ctx, const TgValue *v, const char *prefix);

/* ---- loading
 * [options] .partial (names that the file lacks are left as they are) .more (names that the model lacks
 * are left out; without it they are an error, except torch's counters num_batches_tracked) .view (the
 * tensors stay views of the file, which cannot be assigned to: for inference). Each tensor of model takes
 * the values and the dtype of that name in file. Shapes must be equal, except that () and (1,) match.
 * TG_ERR_VALUE: names that are missing or too many; TG_ERR_SHAPE: shapes differ. On an error nothing has
 * changed. */
typedef struct TgLoadOptions {
  size_t size;
  const char *set;
  bool partial, more, view;
  int end_;
} TgLoadOptions;

TG_API TgStatus tg_load_state_opt(TgState *model, const TgState *file, const TgLoadOptions *o);
/* The tensors of a model file of any format below; the format is recognised by the file's first bytes. */
TG_API TgState *tg_state_from_file(TgContext *ctx, const char *path);

/* ---- safetensors. dtypes: BOOL, I8 .. U64, F8_E4M3, F8_E5M2, F16, BF16, F32, F64; other dtypes are
 * refused by name. */
TG_API TgState *tg_safe_load(TgTensor *file);
TG_API TgState *tg_safe_load_file(TgContext *ctx, const char *path);
/* The header: a map of names to {dtype, shape, data_offsets}, and "__metadata__" if there is one.
 * data_start (may be NULL) receives the place in the file where the data begins. */
TG_API TgValue *tg_safe_load_metadata(TgTensor *file, int64_t *data_start);

/* [options] .metadata: strings, alternating keys and values, ended by NULL. Computes the tensors and
 * writes them, ordered by descending size of their elements, then by name. The file is written beside the
 * old one, synced, and then replaces it in one step, so path has either the old or the new contents,
 * whatever happens. A path that ends in .index.json is the index of .shards files beside it, as Hugging
 * Face has them. There is one for each rank, each rank writes its own, and the index is written last.
 * tg_safe_load_file reads that path with any number of ranks. */
typedef struct TgSafeOptions {
  size_t size;
  const char *set;
  const char *const *metadata;
  int shards;
  int end_;
} TgSafeOptions;

TG_API TgStatus tg_safe_save_opt(const TgState *s, const char *path, const TgSafeOptions *o);

/* ---- captured functions as files (tg_jit). A file is safetensors. Its tensors are the memories that
 * persist (weights, state). Its __metadata__ has "format": "tinygrad.program" and "program", a text with
 * the inputs, the outputs and the graph of each step as it was before planning, so that the machine and
 * device that load it plan and compile it themselves. src/engine/program.c and src/uop/print.c describe
 * the text. Its first line has a version: 1, or 2 if it uses several devices. A later library reads what
 * an earlier one of the same version wrote, because an op keeps its name and meaning within a version.
 * Another version is refused by its number, and an unknown op by its name. */
/* [options] .inputs, .outputs: names, as many as were captured (input0, output0 ..). .state: names and
 * shapes of memories: the tensors that the function knows (memory.0 ..). .metadata: as for tg_safe_save.
 * Writes what is captured (after the second run of tg_jit_run) with the present state, in the way of
 * tg_safe_save. Errors: those of tg_jit_to_text and tg_safe_save. */
typedef struct TgJitSaveOptions {
  size_t size;
  const char *set;
  const char *const *inputs, *const *outputs;
  const TgState *state;
  const char *const *metadata;
  int end_;
} TgJitSaveOptions;

TG_API TgStatus tg_jit_save_opt(TgJit *jit, const char *path, const TgJitSaveOptions *o);
/* A captured function that continues where it was saved: see tg_jit_from_text. tg_jit_run runs it,
 * tg_jit_input and tg_jit_output describe its inputs and outputs, tg_jit_memory returns its state,
 * tg_jit_free ends it. NULL: errors of tg_safe_load and tg_jit_from_text; TG_ERR_VALUE: no such file. */
TG_API TgJit *tg_jit_load(TgTensor *file);
TG_API TgJit *tg_jit_load_file(TgContext *ctx, const char *path);
/* The same on ndevice devices of these names instead of its own ones, in the same order: see
 * tg_jit_from_text_on. */
TG_API TgJit *tg_jit_load_file_on(TgContext *ctx, const char *path, const char *const *devices, int ndevice);

/* Writes a captured function as C99 that needs nothing else (tg_jit_to_c): PATH.c and PATH.h, which appear
 * complete or not at all; PATH may end in .c. [options] .inputs, .outputs, .state: as for tg_jit_save.
 * .name: the prefix of the names in the text (the last part of PATH). .own_math, .target, .vectors,
 * .threads, .max_ram, .same_bits: as for tg_jit_to_c. .weights: a file for the weights, which are then not
 * in the source; .big_endian: its byte order; .streamed: its parts are brought when they are needed;
 * .incbin: also writes PATH.S, with which an assembler makes the file part of the program (.linked of
 * tg_jit_to_c). .about: receives what tg_jit_to_c returns. Errors: those of tg_jit_to_c; TG_ERR_IO. */
typedef struct TgExportOptions {
  size_t size;
  const char *set;
  const char *const *inputs, *const *outputs;
  const TgState *state;
  const char *name, *weights, *target;
  int threads;
  int64_t max_ram;
  bool own_math, big_endian, streamed, incbin;
  TgCText *about;
  const char *vectors;
  bool same_bits;
  int end_;
} TgExportOptions;

TG_API TgStatus tg_export_opt(TgJit *jit, const char *path, const TgExportOptions *o);

/* tg_bundle and tg_bundle_use with a file, which appears complete or not at all. */
TG_API TgStatus tg_bundle_save(TgContext *ctx, const char *path);
TG_API TgStatus tg_bundle_load(TgContext *ctx, const char *path);

/* ---- NumPy's npy, versions 1 to 3, both byte orders, row- and column-major; bool, integers, f16, f32,
 * f64. The tensor has the shape that the file states, and is a view of the file if its bytes are in this
 * machine's order. An npz is a zip archive of npy files. TG_ERR_VALUE: not such a file, or another dtype;
 * TG_ERR_IO: it cannot be read. */
TG_API TgTensor *tg_npy_load(TgTensor *file);
TG_API TgTensor *tg_npy_load_file(TgContext *ctx, const char *path);
/* Computes t and writes it, row-major; the file appears complete or not at all. TG_ERR_DTYPE: NumPy has no
 * such dtype (bf16, fp8). */
TG_API TgStatus tg_npy_save(TgTensor *t, const char *path);

/* ---- archives: regular files by name, as views of the archive; compressed files are unpacked into
 * memory. A file of no bytes is a tensor (0). All tensors are u8. TG_ERR_LIMIT: everything unpacked
 * together is more than 64 times the archive and 16 MiB. */
/* stored and deflated files, zip64; other methods and encryption are refused by name */
TG_API TgState *tg_zip_extract(TgTensor *file);
TG_API TgState *tg_tar_extract(TgTensor *file); /* ustar, GNU and pax long names */
TG_API TgTensor *tg_gunzip(TgTensor *file);     /* gzip, all its members */

/* ---- torch checkpoints: zip, the older stream, tar. The pickle is read by an interpreter that knows the
 * few globals of state dictionaries and runs no code; any other global is refused by its name. Tensors may
 * share storages and have permuted strides; other strides are refused. */
TG_API TgValue *tg_torch_load(TgTensor *file);
TG_API TgValue *tg_torch_load_file(TgContext *ctx, const char *path);

/* ---- gguf, versions 2 and 3. The result is a map {"kv": {..}, "tensors": {..}, "places": {..}}. An array
 * of numbers is a 1-D tensor, an array of strings a list; a place is a tensor's {type, offset in the file,
 * bytes}. Quantised tensors are f32 views whose values are computed where they are used. Tensors of the
 * types IQ1, IQ2 and IQ3, whose codebooks are not included, are TG_KIND_OTHER. The path of the first part
 * of a split model, ..-00001-of-0000n.gguf, loads all parts; key-values and places are those of the first
 * part. */
TG_API TgValue *tg_gguf_load(TgTensor *file);
TG_API TgValue *tg_gguf_load_file(TgContext *ctx, const char *path);
/* n elements of a ggml type from the bytes at the start of u8 t: (n), f32 if quantised. TG_ERR_VALUE:
 * unknown type, or n is not a multiple of its block. */
TG_API TgTensor *tg_ggml_data_to_tensor(TgTensor *t, int64_t n, int type);
/* A matrix of one of ggml's types Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS, MXFP4 in an
 * order for products with few rows. It has memory of its own, as large as the blocks (Q2_K 20 %, Q3_K,
 * Q4_K, Q5_K 2 to 4 % more), with rows of zeros up to a multiple of 32. tg_packed_new makes it from the
 * blocks at the start of u8 data, row after row. NULL: TG_ERR_VALUE: another type; columns that are not a
 * multiple of the block's; data that is too short. tg_packed_values: (rows, columns) f32, the values of
 * tg_ggml_data_to_tensor, computed where they are used. tg_packed_linear: x (n, columns) f32 times the
 * transposed matrix, (n, rows) f32; each 32 adjacent elements of x are rounded to `bits` bits, 16 or 8,
 * relative to the largest of them. NaN if they contain a NaN or an infinity. No gradient.
 * tg_packed_experts: p holds matrices of `rows` rows each, a multiple of 32, one after the other; x (n,
 * columns) is multiplied by those whose numbers are in chosen, i32 (n, used): (n, used, rows). */
typedef struct TgPacked TgPacked;
TG_API TgPacked *tg_packed_new(TgTensor *data, int64_t rows, int64_t columns, int type);
TG_API bool tg_packed_fits(int64_t rows, int64_t columns, int type); /* whether such a matrix can be packed */
TG_API void tg_packed_free(TgPacked *p);
TG_API TgTensor *tg_packed_values(const TgPacked *p);
TG_API TgTensor *tg_packed_linear(TgTensor *x, const TgPacked *p, int64_t bits);
TG_API TgTensor *tg_packed_experts(TgTensor *x, const TgPacked *p, TgTensor *chosen, int64_t rows,
                                   int64_t bits);
TG_API const char *tg_ggml_type_name(int type); /* "Q4_K"; NULL: unknown */
/* Encodes n values at x as a ggml type, into nbytes at out, which must be the size of the encoding: F32,
 * F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K. TG_ERR_VALUE: another type, n is not a multiple
 * of its block, another number of bytes, or a value that is not finite if the type cannot represent it. */
TG_API TgStatus tg_ggml_encode(TgContext *ctx, int type, const float *x, int64_t n, void *out, size_t nbytes);

/* ---- ONNX models: opsets 7 to 28 of the domain ai.onnx, some operators of com.microsoft, inference. An
 * operator that is not supported is refused by name when the model is opened (in a branch of If: when the
 * branch is taken); tg_onnx_op_name lists the supported ones. Functions that the model defines are called.
 * Lists and optional values pass between nodes, but are not allowed as inputs or outputs of a model.
 * Weights are in the file, or in files in its folder and below (external data: not through .., links that
 * lead out, or an absolute path; only for a model opened by its path). Sizes that depend on shapes and
 * small constants are computed at once; a size that depends on an input's values is computed and read when
 * tg_onnx_run is called. While a function is captured (tg_jit) no value can be read: If then computes both
 * branches, whose outputs must have the same shapes. An axis that the model leaves free may have a
 * symbolic size (tg_size), such as a batch or a length: one run of tg_onnx_run, and one capture, then
 * serve all values of its variable. An operator that cannot take such a size, or a shape that would depend
 * on an input's values, is refused by the name of its node (TG_ERR_SHAPE, TG_ERR_STATE). Outputs are lazy
 * tensors. Tensors of a file have its shapes and dtypes. TG_ERR_VALUE: not such a file, with what is
 * wrong; TG_ERR_IO: it cannot be read. */
typedef struct TgOnnx TgOnnx;

/* dtype: integers of 4 and 2 bits are u8 and i8, one byte each. ndim -1: not stated. dims: -1 if a size is
 * free; dim_names: NULL or the name of a free size. has_default: the input may be left out. Lives as long
 * as the model. */
typedef struct TgOnnxValue {
  const char *name;
  TgDType dtype;
  int ndim;
  const int64_t *dims;
  const char *const *dim_names;
  bool has_default;
} TgOnnxValue;

TG_API TgOnnx *tg_onnx_open(TgContext *ctx, const char *path);
TG_API TgOnnx *tg_onnx_load(TgTensor *file);
/* Like tg_onnx_open, but only to inspect the model, not to run it: operators that are not supported are no
 * error, and tg_onnx_run refuses the first of them that it meets. */
TG_API TgOnnx *tg_onnx_describe(TgContext *ctx, const char *path);
TG_API void tg_onnx_free(TgOnnx *m); /* outputs that were not computed yet stay valid. m may be NULL */
TG_API bool tg_onnx_input(const TgOnnx *m, size_t i, TgOnnxValue *v);  /* false: i is past the last */
TG_API bool tg_onnx_output(const TgOnnx *m, size_t i, TgOnnxValue *v); /* as tg_onnx_input */
TG_API int tg_onnx_opset(const TgOnnx *m);                             /* of ai.onnx */
TG_API size_t tg_onnx_node_count(const TgOnnx *m);                     /* of the main graph */
/* Operator set i that the model states it uses. false: i is past the last. */
TG_API bool tg_onnx_import(const TgOnnx *m, size_t i, const char **domain, int64_t *version);

/* The nodes of the main graph, then those of branches, loops and calls of functions. implemented:
 * tg_onnx_run supports this operator in this opset. function: the node calls one of the model's own
 * functions, whose nodes are listed too. */
typedef struct TgOnnxOperator {
  const char *name, *op, *domain;
  bool implemented, function;
} TgOnnxOperator;

TG_API bool tg_onnx_operator(const TgOnnx *m, size_t i, TgOnnxOperator *about); /* false: past the last */
/* number of elements of its tensors */
TG_API int64_t tg_onnx_weights(const TgOnnx *m);
/* Tensor i that the file holds, and the name that the model has for it ("": none). It lives as long as the
 * model. NULL: past the last. */
TG_API TgTensor *tg_onnx_weight(const TgOnnx *m, size_t i, const char **name);
/* in[i] is the input in_names[i]; out receives the first nout outputs, in the innermost scope.
 * TG_ERR_VALUE: an input that is missing, unknown or given twice, or an operator that is not implemented;
 * TG_ERR_DTYPE, TG_ERR_SHAPE: an input that does not match the model's, or a named size with two different
 * values. */
TG_API TgStatus tg_onnx_run(TgOnnx *m, const char *const *in_names, TgTensor *const *in, int nin,
                            TgTensor **out, int nout);

/* The most iterations that all loops of one tg_onnx_run may have together (100,000). One more is
 * TG_ERR_LIMIT, which names the node. A loop is unrolled, so each iteration takes memory until the run
 * ends; tg_cancel ends the run between two nodes. TG_ERR_VALUE: a negative number. */
TG_API TgStatus tg_onnx_loop_limit(TgOnnx *m, int64_t iterations);

/* From now on the input has this value, which is copied, as if it were in the file. Shapes that depend on
 * it are then known, also while a function is captured. The input may no longer be passed to tg_onnx_run.
 * TG_ERR_VALUE: no such input, or it is already fixed; errors of tg_onnx_run about an input. */
TG_API TgStatus tg_onnx_fix(TgOnnx *m, const char *input, TgTensor *value);
/* From now on the model, which must be quantised, is run with integers alone. A float input that is read
 * by a QuantizeLinear is passed quantised, and an output of a DequantizeLinear is returned as the integers
 * before it; tg_onnx_input and tg_onnx_output report these dtypes. Scales and zero points must be
 * constants; each rounded result is within one unit of what floats give. TG_ERR_VALUE, here or from
 * tg_onnx_run: something that has no such form, by the name of its node, input or output. */
TG_API TgStatus tg_onnx_integers(TgOnnx *m);
/* The number that an integer q of such an input or output represents: (q - zero) * scale. Either pointer
 * may be NULL. false: no such input or output, or its scale is not a constant. */
TG_API bool tg_onnx_scale(const TgOnnx *m, const char *name, double *scale, int64_t *zero);

/* A node that was run. name may be ""; number: its place in its graph. out: its outputs, lazy. An output
 * is NULL if it is left out, is a list, or is a small constant (a shape, an axis) that is known without
 * the device. */
typedef struct TgOnnxNode {
  size_t size;
  const char *name, *op, *domain;
  size_t number;
  TgTensor *const *out;
  int nout;
} TgOnnxNode;

/* seen(node, user) is called for each node that tg_onnx_run runs, including those of branches and loops.
 * tg_keep keeps an output, which is an ordinary tensor. In this way values between the layers can be read,
 * and tg_schedule_parts tells which kernels compute which nodes. If seen is NULL, the calls stop. */
TG_API void tg_onnx_watch(TgOnnx *m, void (*seen)(const TgOnnxNode *node, void *user), void *user);
/* a TensorProto of its own, the format in which test data are kept */
TG_API TgTensor *tg_onnx_tensor(TgTensor *file);
/* The supported operators, in no particular order; domain (may be NULL): "", which is ai.onnx, or
 * "com.microsoft". NULL: past the last. */
TG_API const char *tg_onnx_op_name(size_t i, const char **domain);

/* ---- reading a u8 (n) tensor as a stream */
typedef struct TgTensorIO TgTensorIO;
TG_API TgTensorIO *tg_tensor_io(TgTensor *t); /* TG_ERR_VALUE: not u8, or not 1-D. t must outlive it */
/* returns how many bytes were read, fewer at the end */
TG_API size_t tg_tensor_io_read(TgTensorIO *io, void *out, size_t nbytes);
/* SEEK_SET, _CUR, _END; returns the new place, -1: no such place */
TG_API int64_t tg_tensor_io_seek(TgTensorIO *io, int64_t offset, int whence);
TG_API int64_t tg_tensor_io_tell(const TgTensorIO *io); /* the present place */
TG_API void tg_tensor_io_free(TgTensorIO *io);          /* t is not ended */

/* ---- data sets from a folder, gz or not: out[0] train x, [1] train y, [2] test x, [3] test y; u8, lazy
 * if the files are not gz. mnist: the four idx files train-images-idx3-ubyte and so on, also of
 * Fashion-MNIST: x (n, 1, 28, 28), y (n). cifar: data_batch_1.bin .. and test_batch.bin of CIFAR-10's
 * binary version: x (n, 3, 32, 32), y (n). TG_ERR_IO: a file that cannot be read; TG_ERR_VALUE: a file of
 * another format. */
TG_API TgStatus tg_mnist(TgContext *ctx, const char *folder, TgTensor *out[4]);
TG_API TgStatus tg_cifar(TgContext *ctx, const char *folder, TgTensor *out[4]);
TG_API TgTensor *tg_idx(TgTensor *file); /* an idx file of bytes, as u8 in the file's shape */
/* the bytes of path or, unpacked, of path.gz */
TG_API TgTensor *tg_open_data(TgContext *ctx, const char *path);

/* ---- a dataset: the number of items, the tensors of an item, and the function that writes them. The
 * function writes item `item` (0 to count - 1) to host memory at out[k], row-major. It must not use a
 * context or a tensor, because several threads call it at once. random: 64 bits that depend only on the
 * loader's seed, the epoch and the item. An augmentation must take every choice from them; the results
 * then do not depend on the number of threads. A status other than TG_OK ends the batch with that error. */
#define TG_ITEM_TENSORS 8

typedef TgStatus (*TgItemFn)(void *user, int64_t item, uint64_t random, void *const *out);

typedef struct TgItemTensor {
  TgDType dtype;
  int ndim;
  int64_t dims[TG_MAX_RANK];
} TgItemTensor;

/* .size is sizeof(TgDataset). tg_dataset_end calls end(user) if end is not NULL. */
typedef struct TgDataset {
  size_t size;
  int64_t count;
  int ntensor;
  TgItemTensor tensor[TG_ITEM_TENSORS];
  TgItemFn item;
  void (*end)(void *user);
  void *user;
} TgDataset;

/* Item i is row i of each of n tensors (count, ..), any dtype. Their values are read now, into memory of
 * the dataset's own. On an error .item is NULL, which tg_loader refuses. TG_ERR_SHAPE: a scalar, or counts
 * that differ. TG_ERR_VALUE: n is not 1 to TG_ITEM_TENSORS. */
TG_API TgDataset tg_dataset_tensors(TgContext *ctx, TgTensor *const *t, int n);

/* Pictures u8 (count, channels, height, width), read now. An item is f32 (channels, height, width) and, if
 * labels (integers, (count)) are not NULL, i32 (). A value v becomes (v / 255 - mean) / std of its channel;
 * places outside the picture become 0.
 * [options] .mean .std: as many as channels (0 and 1). Each picture is augmented anew each time, in this
 * order: .flip_x .flip_y: the probability that it is mirrored left to right, top to bottom. .degrees: it
 * is turned about its centre by up to this many degrees either way; .zoom: it is enlarged or reduced by a
 * factor of up to 1 + zoom (both read bilinearly). .shift: it is moved by up to this many whole pixels
 * along each axis. .brightness .contrast .saturation: it is blended with black, with its mean grey, or
 * with its own grey version (of 3 channels), by a factor of 1 - x to 1 + x, at least 0, and clipped to 0
 * .. 1. .erase: the probability that a rectangle of 2 to 33 % of the area becomes 0. */
typedef struct TgImageOptions {
  size_t size;
  const char *set;
  const double *mean, *std;
  double flip_x, flip_y, degrees, zoom;
  int64_t shift;
  double brightness, contrast, saturation, erase;
  int end_;
} TgImageOptions;

/* TG_ERR_DTYPE: pictures that are not u8, labels that are not integers. TG_ERR_VALUE: a probability that
 * is not 0 to 1, a negative amount, std 0. */
TG_API TgDataset tg_dataset_images_opt(TgTensor *pictures, TgTensor *labels, const TgImageOptions *o);
TG_API void tg_dataset_end(TgDataset *d); /* call it after the loaders that use d are freed. d may be NULL */

/* ---- a data loader: batches of a dataset, made in advance by threads of its own. An epoch has each item
 * once. */
typedef struct TgLoader TgLoader;

/* [options] .batch (1): items of a batch. .shuffle: each epoch in an order of its own, determined by .seed
 * (0). .drop_last: items at the end of an epoch that do not fill a batch are left out; otherwise the last
 * batch is smaller. .workers (1): threads; if 0 is written, tg_loader_next makes the batch. .ahead (2 +
 * .workers): the most batches that wait. .by_rank: a rank makes only the items that it needs when tg_shard
 * then splits the batch along axis 0 over as many devices as there are ranks; the values of the other
 * items are undefined. */
typedef struct TgLoaderOptions {
  size_t size;
  const char *set;
  int64_t batch, workers, ahead;
  bool shuffle, drop_last;
  uint64_t seed;
  bool by_rank;
  int end_;
} TgLoaderOptions;

/* The dataset's function and what it reads must outlive the loader, which ends before the context. */
TG_API TgLoader *tg_loader_opt(TgContext *ctx, const TgDataset *d, const TgLoaderOptions *o);
/* out: as many tensors as the dataset has, (batch, ..). They belong to the loader, and the next call ends
 * them; tensors computed from them stay valid. false: either the epoch is over, and the next call begins
 * the next epoch; or there is an error, which tg_error returns, and the next call continues after that
 * batch. */
TG_API bool tg_loader_next(TgLoader *l, TgTensor **out);
TG_API int64_t tg_loader_batches(const TgLoader *l); /* number of batches of an epoch */
/* The batch that tg_loader_next will return, 0 to tg_loader_batches, and its epoch, from 0. Either pointer
 * may be NULL. */
TG_API void tg_loader_tell(const TgLoader *l, int64_t *epoch, int64_t *batch);
/* Moves to a batch, as if all batches before it had been taken. If a training continues (tg_train_load),
 * step n is batch n % tg_loader_batches of epoch n / tg_loader_batches. TG_ERR_VALUE: no such batch. */
TG_API TgStatus tg_loader_seek(TgLoader *l, int64_t epoch, int64_t batch);
TG_API void tg_loader_free(TgLoader *l); /* l may be NULL */

#ifndef __cplusplus
#define tg_load_state(...)     TG_OPT2_(tg_load_state_opt, TgLoadOptions, __VA_ARGS__, .end_ = 0)
#define tg_jit_save(...)       TG_OPT2_(tg_jit_save_opt, TgJitSaveOptions, __VA_ARGS__, .end_ = 0)
#define tg_export(...)         TG_OPT2_(tg_export_opt, TgExportOptions, __VA_ARGS__, .end_ = 0)
#define tg_safe_save(...)      TG_OPT2_(tg_safe_save_opt, TgSafeOptions, __VA_ARGS__, .end_ = 0)
#define tg_loader(...)         TG_OPT2_(tg_loader_opt, TgLoaderOptions, __VA_ARGS__, .end_ = 0)
#define tg_dataset_images(...) TG_OPT2_(tg_dataset_images_opt, TgImageOptions, __VA_ARGS__, .end_ = 0)
#else
} /* extern "C" */

inline TgStatus tg_load_state(TgState *model, const TgState *file, TgLoadOptions o = TgLoadOptions()) {
  o.size = sizeof o;
  return tg_load_state_opt(model, file, &o);
}

inline TgStatus tg_jit_save(TgJit *jit, const char *path, TgJitSaveOptions o = TgJitSaveOptions()) {
  o.size = sizeof o;
  return tg_jit_save_opt(jit, path, &o);
}

inline TgStatus tg_export(TgJit *jit, const char *path, TgExportOptions o = TgExportOptions()) {
  o.size = sizeof o;
  return tg_export_opt(jit, path, &o);
}

inline TgLoader *tg_loader(TgContext *ctx, const TgDataset *d, TgLoaderOptions o = TgLoaderOptions()) {
  o.size = sizeof o;
  return tg_loader_opt(ctx, d, &o);
}

inline TgDataset tg_dataset_images(TgTensor *pictures, TgTensor *labels,
                                   TgImageOptions o = TgImageOptions()) {
  o.size = sizeof o;
  return tg_dataset_images_opt(pictures, labels, &o);
}

inline TgStatus tg_safe_save(const TgState *s, const char *path, TgSafeOptions o = TgSafeOptions()) {
  o.size = sizeof o;
  return tg_safe_save_opt(s, path, &o);
}
#endif
#endif
