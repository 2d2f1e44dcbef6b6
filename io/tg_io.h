/* tg_io.h: state dictionaries and files of models and data, built on tg.h alone.
 *
 * A file is a 1-D u8 tensor, tg_from_file(ctx, path, TG_U8, TG_SHAPE(-1)), and every reader takes one:
 * readers give tensors that are views of it, so nothing is read before it is needed, and a reader works on a
 * file inside an archive too. The functions that end in _file take a path. What a file says is not trusted:
 * each size, offset and count is checked against what there is before it is used. A file that is not what it
 * should be is TG_ERR_VALUE with its name and what is wrong; one that cannot be read is TG_ERR_IO; a thing of
 * the format that is not read here is refused by name. A TgState and a TgValue own the tensors that they were
 * made with, and end before the context is closed. */
#ifndef TG_IO_H
#define TG_IO_H
#include "tg.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- state dictionaries: names -> tensors, in the order they were put. Tensors of any shape and dtype are
 * lent as they are. Errors: TG_ERR_NOMEM, TG_ERR_VALUE (a tensor of another context). */
TG_API TgState *tg_state_new(TgContext *ctx);
TG_API void tg_state_free(TgState *s); /* ends the tensors that readers made; NULL is fine */
/* The tensor stays yours and must outlive s. A name that is there already gets the new tensor. Layers have
 * tg_linear_state and so on (tg_nn.h). */
TG_API TgStatus tg_state_put(TgState *s, const char *name, TgTensor *t);
TG_API TgTensor *tg_state_get(const TgState *s, const char *name); /* NULL: no such name, which is no error */
/* Takes the name out; the tensor is yours now, kept (tg_release ends it). NULL: no such name. */
TG_API TgTensor *tg_state_remove(TgState *s, const char *name);
TG_API size_t tg_state_count(const TgState *s); /* names in it */
/* name may be NULL. NULL: i is past the end */
TG_API TgTensor *tg_state_at(const TgState *s, size_t i, const char **name);
/* tg_state_count tensors, in order; valid until s changes */
TG_API TgTensor *const *tg_get_parameters(const TgState *s);

/* ---- what a file says besides tensors: a tree of values. NULL is no value, and every question about it
 * is answered with 0 or NULL, without an error but TG_ERR_NOMEM. Tensors have the shape and dtype of the
 * file's. */
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
  TG_KIND_OTHER /* what the file names but nothing here needs: torch.device and the like */
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
TG_API void tg_value_free(TgValue *root); /* what a reader gave, with its tensors. NULL is fine */
/* The tensors of a tree under dotted names: keys of maps, numbers of lists; what is no tensor is left out.
 * They stay the tree's. prefix may be NULL. */
TG_API TgState *tg_get_state(TgContext *ctx, const TgValue *v, const char *prefix);

/* ---- loading
 * [options] .partial (names that the file lacks are left as they are) .more (names that the model lacks are
 * left out; without it they are an error, but for torch's counters num_batches_tracked) .view (the tensors
 * stay views of the file, which cannot be assigned to: for inference). Each tensor of model gets the values,
 * and the dtype, of that name in file. Shapes must be equal, but () and (1,) are. TG_ERR_VALUE: names that
 * are missing or too many; TG_ERR_SHAPE: shapes. Then nothing has changed. */
typedef struct TgLoadOptions {
  size_t size;
  const char *set;
  bool partial, more, view;
  int end_;
} TgLoadOptions;

TG_API TgStatus tg_load_state_opt(TgState *model, const TgState *file, const TgLoadOptions *o);
/* The tensors of a model file of any kind below, by its first bytes. */
TG_API TgState *tg_state_from_file(TgContext *ctx, const char *path);

/* ---- safetensors. dtypes: BOOL, I8 .. U64, F8_E4M3, F8_E5M2, F16, BF16, F32, F64; others are refused by
 * name. */
TG_API TgState *tg_safe_load(TgTensor *file);
TG_API TgState *tg_safe_load_file(TgContext *ctx, const char *path);
/* The header: a map of names to {dtype, shape, data_offsets}, and "__metadata__" if there is one. data_start
 * (may be NULL): where the data begins. */
TG_API TgValue *tg_safe_load_metadata(TgTensor *file, int64_t *data_start);

/* [options] .metadata: strings, a key and its value in turn, ended by NULL. Computes the tensors and writes
 * them, by falling size of element, then name. The file is written beside the old one, synced, and takes its
 * place at once: path has the old or the new, whatever happens. A path that ends in .index.json is the index
 * of .shards files beside it, as Hugging Face has them (one for each rank), each written by a rank of its
 * own, the index last: tg_safe_load_file reads that path, in any number of ranks. */
typedef struct TgSafeOptions {
  size_t size;
  const char *set;
  const char *const *metadata;
  int shards;
  int end_;
} TgSafeOptions;

TG_API TgStatus tg_safe_save_opt(const TgState *s, const char *path, const TgSafeOptions *o);

/* ---- captured functions as files (tg_jit). A file is safetensors: the memories that stay (weights, state)
 * are its tensors, and __metadata__ has "format": "tinygrad.program" and "program", a text: inputs, outputs,
 * and the graph of each step as it was before it was planned, so that whatever machine and device loads it
 * plans and compiles it. src/engine/program.c and src/uop/print.c say what the text looks like. Its first
 * line has a version, 1, or 2 of several devices: a later library reads what an earlier one of the same
 * version wrote, an op keeps its name and meaning within a version, and another version is refused by its
 * number, an op that is not known by its name. */
/* [options] .inputs, .outputs: names, as many as were captured (input0, output0 ..). .state: names and shapes
 * of memories: the tensors that the function knows (memory.0 ..). .metadata: as of tg_safe_save. Writes what
 * is captured (after the second run of tg_jit_run), with the state of now, as tg_safe_save writes. Errors:
 * those of tg_jit_to_text and tg_safe_save. */
typedef struct TgJitSaveOptions {
  size_t size;
  const char *set;
  const char *const *inputs, *const *outputs;
  const TgState *state;
  const char *const *metadata;
  int end_;
} TgJitSaveOptions;

TG_API TgStatus tg_jit_save_opt(TgJit *jit, const char *path, const TgJitSaveOptions *o);
/* A captured function that goes on where it was saved: see tg_jit_from_text. tg_jit_run runs it, tg_jit_input
 * and tg_jit_output tell what it takes and gives, tg_jit_memory has its state, tg_jit_free ends it. NULL:
 * errors of tg_safe_load and tg_jit_from_text; TG_ERR_VALUE: no such file. */
TG_API TgJit *tg_jit_load(TgTensor *file);
TG_API TgJit *tg_jit_load_file(TgContext *ctx, const char *path);
/* The same on devices of these names instead of its own, ndevice of them, in their order: see
 * tg_jit_from_text_on. */
TG_API TgJit *tg_jit_load_file_on(TgContext *ctx, const char *path, const char *const *devices, int ndevice);

/* A captured function as C99 that needs nothing (tg_jit_to_c): PATH.c and PATH.h, which appear whole or not
 * at all; PATH may end in .c. [options] .inputs, .outputs, .state: as of tg_jit_save. .name: what the names
 * in the text begin with (the last part of PATH). .own_math, .target, .vectors, .threads, .max_ram,
 * .same_bits: as of tg_jit_to_c. .weights: a file for the weights, which the source then does not have; .big_endian: its byte
 * order; .streamed: its parts are brought when they are needed; .incbin: PATH.S too, which an assembler
 * makes a part of the program of the file (.linked of tg_jit_to_c). .about: gets what tg_jit_to_c gives.
 * Errors: those of tg_jit_to_c; TG_ERR_IO. */
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

/* tg_bundle and tg_bundle_use with a file, which appears whole. */
TG_API TgStatus tg_bundle_save(TgContext *ctx, const char *path);
TG_API TgStatus tg_bundle_load(TgContext *ctx, const char *path);

/* ---- NumPy's npy, versions 1 to 3, both byte orders, row- and column-major; bool, integers, f16, f32,
 * f64. A view of the file where its bytes are as ours, of the shape that the file tells. An npz is a zip
 * archive of them. TG_ERR_VALUE: what is no such file, or another dtype; TG_ERR_IO: it cannot be read. */
TG_API TgTensor *tg_npy_load(TgTensor *file);
TG_API TgTensor *tg_npy_load_file(TgContext *ctx, const char *path);
/* Computes t and writes it, row-major; the file appears whole. TG_ERR_DTYPE: NumPy has none such (bf16, fp8).
 */
TG_API TgStatus tg_npy_save(TgTensor *t, const char *path);

/* ---- archives: regular files by name, views of the archive; what is compressed is unpacked into memory.
 * A file of no bytes is a tensor (0). All are u8. TG_ERR_LIMIT: all that is unpacked is more than 64 times
 * the archive and 16 MiB. */
/* stored and deflated, zip64; other methods and encryption are refused by name */
TG_API TgState *tg_zip_extract(TgTensor *file);
TG_API TgState *tg_tar_extract(TgTensor *file); /* ustar, GNU and pax long names */
TG_API TgTensor *tg_gunzip(TgTensor *file);     /* gzip, all its members */

/* ---- torch checkpoints: zip, the older stream, tar. The pickle is read by an interpreter that knows the few
 * globals of state dictionaries and runs nothing; any other global is refused by its name. Tensors may share
 * storages and have permuted strides; other strides are refused. */
TG_API TgValue *tg_torch_load(TgTensor *file);
TG_API TgValue *tg_torch_load_file(TgContext *ctx, const char *path);

/* ---- gguf, versions 2 and 3. A map {"kv": {..}, "tensors": {..}, "places": {..}}: an array of numbers is
 * a 1-D tensor, one of strings a list; a place is a tensor's {type, offset in the file, bytes}. Quantised
 * tensors are views whose values are computed where they are used: f32. Those of the types IQ1, IQ2 and
 * IQ3, whose codebooks are not here, are TG_KIND_OTHER. The path of the first part of a split model,
 * ..-00001-of-0000n.gguf, loads all of them; its key-values and places are the first part's. */
TG_API TgValue *tg_gguf_load(TgTensor *file);
TG_API TgValue *tg_gguf_load_file(TgContext *ctx, const char *path);
/* n elements of ggml's type from the bytes at the start of u8 t: (n), f32 if quantised. TG_ERR_VALUE: unknown
 * type, n no multiple of its block. */
TG_API TgTensor *tg_ggml_data_to_tensor(TgTensor *t, int64_t n, int type);
/* A matrix of ggml's types Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL, IQ4_XS, MXFP4 in an order for
 * products with few rows: memory of its own, as large as the blocks (Q2_K 20 %, Q3_K, Q4_K, Q5_K 2 to 4 %
 * more), made by tg_packed_new from the blocks at the start of u8 data, row after row. NULL: TG_ERR_VALUE:
 * another type; rows that are no multiple of 32, columns that are none of the block's; data that is too
 * short. values: (rows, columns) f32, those of tg_ggml_data_to_tensor, computed where they are used. linear:
 * x (n, columns) f32 times the matrix turned, (n, rows) f32; x is rounded to bits, 16 or 8, below the
 * largest of 32 of its elements that lie beside each other. NaN where those have a NaN or an infinity. No
 * gradient. experts: p is matrices of `rows` each, a multiple of 32, one after the other; x (n, columns)
 * times those whose numbers stand in chosen, i32 (n, used): (n, used, rows). */
typedef struct TgPacked TgPacked;
TG_API TgPacked *tg_packed_new(TgTensor *data, int64_t rows, int64_t columns, int type);
TG_API bool tg_packed_fits(int64_t rows, int64_t columns, int type); /* whether these can be packed */
TG_API void tg_packed_free(TgPacked *p);
TG_API TgTensor *tg_packed_values(const TgPacked *p);
TG_API TgTensor *tg_packed_linear(TgTensor *x, const TgPacked *p, int64_t bits);
TG_API TgTensor *tg_packed_experts(TgTensor *x, const TgPacked *p, TgTensor *chosen, int64_t rows,
                                   int64_t bits);
/* A folder of a language model as Hugging Face has it: config.json, model.safetensors or its shards,
 * tokenizer.json and tokenizer_config.json where they are there: the map that a gguf file of the model
 * would give, without places; "rope.halves" says that q and k have a head's halves one after the other.
 * model_type llama, mistral, mixtral, smollm3, qwen2, qwen3, qwen2_moe, qwen3_moe, gpt_oss, phi3, glm4,
 * gpt2, gemma, gemma2, gemma3_text; tokenizers of byte pairs, unigrams, WordPiece. Weights are views of
 * the files, but for experts of which each is a tensor, and gpt_oss' packed ones: these are put together
 * in memory. NULL: TG_ERR_IO; TG_ERR_VALUE: what is not read here, by name. */
TG_API TgValue *tg_hf_load(TgContext *ctx, const char *path);
TG_API const char *tg_ggml_type_name(int type); /* "Q4_K"; NULL: unknown */
/* n values at x as ggml's type, into the nbytes at out, which are as many as these have: F32, F16, BF16,
 * Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K. TG_ERR_VALUE: another type, n no multiple of its block,
 * another number of bytes, a value that is not finite where the type has none such. */
TG_API TgStatus tg_ggml_encode(TgContext *ctx, int type, const float *x, int64_t n, void *out, size_t nbytes);

/* ---- ONNX models: opsets 7 to 28 of the domain ai.onnx, some operators of com.microsoft, inference. An
 * operator that is not here is refused by name when the model is opened (in a branch of If: when it is
 * taken); tg_onnx_op_name lists those that are. Functions of the model's own are called; lists and optional
 * values pass between nodes, but are no inputs or outputs of a model. Weights lie in the file, or in files in
 * its folder and below (external data: not through .., links that lead out, or an absolute path; for a model
 * opened by its path). Sizes that depend on shapes and small constants are computed at once; one that depends
 * on an input's values is computed and read when tg_onnx_run is called. While a function is captured (tg_jit)
 * no value can be read: If then computes both branches, whose outputs must have the same shapes. An axis that
 * the model leaves free may have a symbolic size (tg_size), as a batch or a length: one run of tg_onnx_run, and
 * one capture, then serves all values of its variable. An operator that cannot take it, or a shape that would
 * depend on an input's values, is refused by the name of its node (TG_ERR_SHAPE, TG_ERR_STATE). Outputs are
 * lazy tensors. Tensors of a file have its shapes and dtypes. TG_ERR_VALUE: what is no such file, with what
 * is wrong; TG_ERR_IO: it cannot be read. */
typedef struct TgOnnx TgOnnx;

/* dtype: integers of 4 and 2 bits are u8 and i8, a byte each. ndim -1: not said. dims: -1 where a size is
 * free; dim_names: NULL or the name of a free size. has_default: may be left out. Lives as long as the model.
 */
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
/* As tg_onnx_open, for what the model is, not to run it: operators that are not here are no error, and
 * tg_onnx_run refuses the first that it meets. */
TG_API TgOnnx *tg_onnx_describe(TgContext *ctx, const char *path);
TG_API void tg_onnx_free(TgOnnx *m); /* outputs that were not computed stay good. NULL is fine */
TG_API bool tg_onnx_input(const TgOnnx *m, size_t i, TgOnnxValue *v);  /* false: i is past the last */
TG_API bool tg_onnx_output(const TgOnnx *m, size_t i, TgOnnxValue *v); /* as tg_onnx_input */
TG_API int tg_onnx_opset(const TgOnnx *m);                             /* of ai.onnx */
TG_API size_t tg_onnx_node_count(const TgOnnx *m);                     /* of the main graph */
/* Operator set i that the model says it is written in. false: i is past the last. */
TG_API bool tg_onnx_import(const TgOnnx *m, size_t i, const char **domain, int64_t *version);

/* A node of the main graph, then those of branches, loops and calls of functions. implemented: tg_onnx_run
 * knows its operator in this opset. function: it calls one of the model's own, whose nodes are listed too. */
typedef struct TgOnnxOperator {
  const char *name, *op, *domain;
  bool implemented, function;
} TgOnnxOperator;

TG_API bool tg_onnx_operator(const TgOnnx *m, size_t i, TgOnnxOperator *about); /* false: past the last */
TG_API int64_t tg_onnx_weights(const TgOnnx *m);                                /* elements of its tensors */
/* Tensor i that the file holds, by the name that the model has for it ("": none). It lives as long as the
 * model. NULL: past the last. */
TG_API TgTensor *tg_onnx_weight(const TgOnnx *m, size_t i, const char **name);
/* in[i] is the input in_names[i]; out: the first nout outputs, of the innermost scope. TG_ERR_VALUE: an input
 * that is missing, unknown or given twice, an operator that is not implemented; TG_ERR_DTYPE, TG_ERR_SHAPE:
 * an input unlike the model's, or a named size that is two things at once. */
TG_API TgStatus tg_onnx_run(TgOnnx *m, const char *const *in_names, TgTensor *const *in, int nin,
                            TgTensor **out, int nout);

/* The most iterations that all loops of one tg_onnx_run may have together (100,000): one more is
 * TG_ERR_LIMIT, which names the node. A loop is unrolled, so each iteration takes memory until the run ends;
 * tg_cancel ends it between two nodes. TG_ERR_VALUE: a negative number. */
TG_API TgStatus tg_onnx_loop_limit(TgOnnx *m, int64_t iterations);

/* From now on the input has this value, which is copied, as if the file gave it: what decides a shape is
 * known then, also while a function is captured. It may not be given to tg_onnx_run any more. TG_ERR_VALUE:
 * no such input, or it is fixed; errors of tg_onnx_run about an input. */
TG_API TgStatus tg_onnx_fix(TgOnnx *m, const char *input, TgTensor *value);
/* From now on the model, a quantised one, is run with integers alone. Floats that go in through a
 * QuantizeLinear are given quantised, outputs of a DequantizeLinear come as what it takes: tg_onnx_input and
 * tg_onnx_output tell their dtypes. Scales and zero points must be constants; each rounded result is within
 * one unit of what floats give. TG_ERR_VALUE, here or from tg_onnx_run: what has no such form, by the name
 * of its node, input or output. */
TG_API TgStatus tg_onnx_integers(TgOnnx *m);
/* What a number q of such an input or output stands for: (q - zero) * scale. Either pointer may be NULL.
 * false: none such, or its scale is no constant. */
TG_API bool tg_onnx_scale(const TgOnnx *m, const char *name, double *scale, int64_t *zero);

/* A node that was run. name may be ""; number: its place in its graph. out: its outputs, lazy; NULL: one that
 * is left out, a list, or a small constant (a shape, an axis) that is known without the device. */
typedef struct TgOnnxNode {
  size_t size;
  const char *name, *op, *domain;
  size_t number;
  TgTensor *const *out;
  int nout;
} TgOnnxNode;

/* seen(node, user) is called for each node that tg_onnx_run goes through, those of branches and loops too.
 * tg_keep keeps an output, which is any other tensor: what lies between the layers can be read, and
 * tg_schedule_parts tells which kernels compute which nodes. NULL: no calls. */
TG_API void tg_onnx_watch(TgOnnx *m, void (*seen)(const TgOnnxNode *node, void *user), void *user);
TG_API TgTensor *tg_onnx_tensor(TgTensor *file); /* a TensorProto of its own, as test data are kept */
/* The operators, in no order; domain (may be NULL): "", which is ai.onnx, or "com.microsoft". NULL: past the
 * last. */
TG_API const char *tg_onnx_op_name(size_t i, const char **domain);

/* ---- reading a u8 (n) tensor as a stream */
typedef struct TgTensorIO TgTensorIO;
TG_API TgTensorIO *tg_tensor_io(TgTensor *t); /* TG_ERR_VALUE: not u8, or not 1-D. t must outlive it */
/* how many there were, less at the end */
TG_API size_t tg_tensor_io_read(TgTensorIO *io, void *out, size_t nbytes);
/* SEEK_SET, _CUR, _END; the new place, -1: none such */
TG_API int64_t tg_tensor_io_seek(TgTensorIO *io, int64_t offset, int whence);
TG_API int64_t tg_tensor_io_tell(const TgTensorIO *io); /* the place of now */
TG_API void tg_tensor_io_free(TgTensorIO *io);          /* t stays */

/* ---- data sets from a folder, gz or not: out[0] train x, [1] train y, [2] test x, [3] test y; u8, lazy
 * where they are not gz. mnist: the four idx files train-images-idx3-ubyte and so on, also of Fashion-MNIST:
 * x (n, 1, 28, 28), y (n). cifar: data_batch_1.bin .. and test_batch.bin of CIFAR-10's binary version: x (n,
 * 3, 32, 32), y (n). TG_ERR_IO: a file that cannot be read; TG_ERR_VALUE: one that is something else. */
TG_API TgStatus tg_mnist(TgContext *ctx, const char *folder, TgTensor *out[4]);
TG_API TgStatus tg_cifar(TgContext *ctx, const char *folder, TgTensor *out[4]);
TG_API TgTensor *tg_idx(TgTensor *file); /* an idx file of bytes: its shape, u8 */
/* the bytes of path or, unpacked, of path.gz */
TG_API TgTensor *tg_open_data(TgContext *ctx, const char *path);

/* ---- a dataset: how many items there are, the tensors of an item, and the function that writes them. It
 * writes item `item` (0 to count - 1) of host memory at out[k], row-major, and reads nothing of a context or
 * a tensor, because several threads call it at once. random: 64 bits that depend on the loader's seed, the
 * epoch and the item alone; who augments takes every choice from them, and the numbers do not depend on how
 * many threads there are. A status that is not TG_OK ends the batch with that error. */
#define TG_ITEM_TENSORS 8

typedef TgStatus (*TgItemFn)(void *user, int64_t item, uint64_t random, void *const *out);

typedef struct TgItemTensor {
  TgDType dtype;
  int ndim;
  int64_t dims[TG_MAX_RANK];
} TgItemTensor;

/* .size is sizeof(TgDataset). end(user), where there is one, is what tg_dataset_end calls. */
typedef struct TgDataset {
  size_t size;
  int64_t count;
  int ntensor;
  TgItemTensor tensor[TG_ITEM_TENSORS];
  TgItemFn item;
  void (*end)(void *user);
  void *user;
} TgDataset;

/* Item i is row i of each of n tensors (count, ..), any dtype. Their values are read now, into memory of the
 * dataset's own. On an error .item is NULL, which tg_loader refuses. TG_ERR_SHAPE: a scalar, or counts that
 * differ. TG_ERR_VALUE: n is not 1 to TG_ITEM_TENSORS. */
TG_API TgDataset tg_dataset_tensors(TgContext *ctx, TgTensor *const *t, int n);

/* Pictures u8 (count, channels, height, width), read now. An item is f32 (channels, height, width) and, where
 * labels (integers, (count)) are not NULL, i32 (). A value v becomes (v / 255 - mean) / std of its channel;
 * what lies outside a picture becomes 0.
 * [options] .mean .std: as many as channels (0 and 1). Each picture anew, in this order: .flip_x .flip_y:
 * with that probability it is mirrored left to right, top to bottom. .degrees: turned about its centre by up
 * to so many either way; .zoom: enlarged or made smaller by a factor of up to 1 + zoom (both read
 * bilinearly). .shift: moved by up to so many whole pixels along each axis. .brightness .contrast
 * .saturation: blended with black, with its mean grey, with its own grey (of 3 channels), by a factor of 1 -
 * x to 1 + x, at least 0, and cut off at 0 and 1. .erase: with that probability a rectangle of 2 to 33 % of
 * the area becomes 0. */
typedef struct TgImageOptions {
  size_t size;
  const char *set;
  const double *mean, *std;
  double flip_x, flip_y, degrees, zoom;
  int64_t shift;
  double brightness, contrast, saturation, erase;
  int end_;
} TgImageOptions;

/* TG_ERR_DTYPE: pictures that are not u8, labels that are no integers. TG_ERR_VALUE: a probability that is
 * not 0 to 1, a negative amount, std 0. */
TG_API TgDataset tg_dataset_images_opt(TgTensor *pictures, TgTensor *labels, const TgImageOptions *o);
TG_API void tg_dataset_end(TgDataset *d); /* after the loaders that use it. NULL is fine */

/* ---- a data loader: batches of a dataset, made ahead by threads of its own. An epoch is each item once. */
typedef struct TgLoader TgLoader;

/* [options] .batch (1): items of a batch. .shuffle: each epoch in an order of its own, by .seed (0).
 * .drop_last: what does not fill a batch at the end of an epoch is left out; else the last batch is smaller.
 * .workers (1): threads; a 0 that is written: tg_loader_next makes the batch. .ahead (2 + .workers): batches
 * that wait at most. .by_rank: a rank makes the items alone that tg_shard along axis 0, over as many devices
 * as there are ranks, then takes from it; what stands for the others means nothing. */
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
/* out: as many as the dataset has tensors, (batch, ..). They are the loader's: the next call ends them, which
 * what was computed from them does not mind. false: the epoch is over, and the next call begins the next
 * one; or an error, which tg_error has, and the next call goes on after that batch. */
TG_API bool tg_loader_next(TgLoader *l, TgTensor **out);
TG_API int64_t tg_loader_batches(const TgLoader *l); /* of an epoch */
/* The batch that tg_loader_next gives next, 0 to tg_loader_batches, and its epoch, from 0. Either pointer may
 * be NULL. */
TG_API void tg_loader_tell(const TgLoader *l, int64_t *epoch, int64_t *batch);
/* To a batch, as if all before it had been taken: step n of a training that goes on (tg_train_load) is batch
 * n % tg_loader_batches of epoch n / tg_loader_batches. TG_ERR_VALUE: none such. */
TG_API TgStatus tg_loader_seek(TgLoader *l, int64_t epoch, int64_t batch);
TG_API void tg_loader_free(TgLoader *l); /* NULL is fine */

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
