/* io_private.h: what the readers share: bytes of a u8 tensor, errors, maps from names to numbers, memory
 * that grows, values under construction. */
#ifndef TG_IO_PRIVATE_H
#define TG_IO_PRIVATE_H
#include "tg_io.h"
#include <stdarg.h>
#include <string.h>

/* The bytes of a file as the processor sees them: in place on devices that use the host's memory, a copy
 * on other devices. */
typedef struct Source {
  TgContext *ctx;
  TgTensor *t;
  const uint8_t *p;
  uint64_t n;
  uint8_t *copy;
  const char *what, *name;
} Source;

/* Returns false after an error, which is in the context. name may be NULL. */
bool source_open(Source *s, TgTensor *t, const char *what, const char *name);
void source_close(Source *s);
/* A view of a file: elements of dtype d from byte at on, in the given shape. Checks that at + size is
 * inside the file. */
TgTensor *source_view(const Source *s, uint64_t at, TgDType d, int n, const int64_t *dims);
/* Records status with the text "what: name: text", unless there is an error already. Returns false. */
bool io_fail(const Source *s, TgStatus status, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool ctx_fail(TgContext *ctx, TgStatus status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Whether sums of tg_dot4 are faster than sums of tg_dot2 on t's device, if no byte of x is more than
 * `most`. */
bool tensor_has_dot4(const TgTensor *t, int most);
/* x * y + z; all have the same dtype. */
TgTensor *tensor_mulacc(TgTensor *x, TgTensor *y, TgTensor *z);
TgTensor *file_tensor(TgContext *ctx, const char *path);

/* A new file that replaces the file at its path once it is complete. If begin returns false, errno says
 * why. end(ok false) deletes what was written. If end returns false, nothing has changed and errno says
 * why. */
typedef struct NewFile {
  int fd;
  bool elsewhere; /* another rank writes the file: this rank does nothing */
  /* the path is not a regular file but, for example, a device: it is written directly */
  bool in_place;
  char place[4096], name[4200]; /* place: the path to replace; name: the new file beside it */
} NewFile;

bool file_begin(NewFile *f, const char *path);
bool file_write(NewFile *f, const void *p, size_t n);
bool file_end(NewFile *f, bool ok);
/* The same for a file whose contents every rank has: one rank writes it, and all continue once it is
 * there. On failure all ranks get the errno of that rank. */
bool file_begin_once(TgContext *ctx, NewFile *f, const char *path, int rank);
bool file_end_once(TgContext *ctx, NewFile *f, bool ok);

static inline bool inside(uint64_t at, uint64_t n, uint64_t total) { return at <= total && n <= total - at; }

static inline uint16_t le16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

static inline uint32_t le32(const uint8_t *p) { return (uint32_t)le16(p) | (uint32_t)le16(p + 2) << 16; }

static inline uint64_t le64(const uint8_t *p) { return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32; }

/* at: an array of n elements of size bytes. Returns the array with room for at least one more element.
 * Returns NULL if out of memory; at is then unchanged. */
void *io_grow(TgContext *ctx, void *at, size_t n, size_t *cap, size_t size);

uint64_t io_random(uint64_t *state); /* loader.c: the next random word; state is the generator's state */

/* archive.c: whether the bytes begin as a zip or a tar does. */
bool zip_is(const Source *s);
bool tar_is(const Source *s);
/* *parts receives, for each file in order, where its bytes are in s; p is NULL if the file was unpacked.
 * parts may be NULL if that is not wanted. The caller frees *parts with tg_free; it is NULL if the reader
 * fails. */
TgState *zip_read(const Source *s, Source **parts);
TgState *tar_read(const Source *s, Source **parts);

/* A map from names to numbers. Names are neither copied nor ended by a 0 byte, so they must stay in
 * memory. */
typedef struct Name {
  const char *at;
  size_t n;
  size_t value;
} Name;

typedef struct Index {
  Name *slot;
  size_t n, cap;
} Index;

/* Returns false if out of memory. If the name exists already, its number is kept. */
bool index_put(TgContext *ctx, Index *x, const char *name, size_t n, size_t value, bool *was_there);
bool index_find(const Index *x, const char *name, size_t n, size_t *value);
void index_free(TgContext *ctx, Index *x);

/* A tree of values is in blocks of memory that are freed with its root. */
struct TgValue {
  TgKind kind;
  uint32_t room; /* of a root that grows (tg_value_new): how many values there is memory for */
  int64_t n;

  union {
    int64_t i;
    double f;
    const char *s;
    TgValue *at;
    TgTensor *t;
  } u;
};

typedef struct Block {
  struct Block *next;
  size_t used, cap;
} Block;

/* root comes first, so a TgValue * that a reader returned is also a Doc *. more: trees from which this one
 * has values; they are freed with it. */
typedef struct Doc {
  TgValue root;
  TgContext *ctx;
  Block *blocks;
  TgState *tensors;
  struct Doc *more;
} Doc;

Doc *doc_new(TgContext *ctx);
void *doc_alloc(Doc *d, size_t n); /* zeroed, 8-aligned */
bool doc_string(Doc *d, TgValue *v, const void *s, size_t n);
/* makes a list of n, or a map of n: key, value, key, value */
bool doc_items(Doc *d, TgValue *v, TgKind kind, size_t n);
/* t is kept and ends with the tree; returns false if t is NULL */
bool doc_tensor(Doc *d, TgValue *v, TgTensor *t);
void doc_free(Doc *d);
TgContext *state_context(const TgState *s);
/* t is kept and ends with s. Returns false if t is NULL, and also, without an error, if the name exists
 * already. */
bool state_own(TgState *s, const char *name, size_t n, TgTensor *t);
/* Moves the tensor that `from` owns under that name to `to`. Returns false if there is none, or `to` has
 * the name already. */
bool state_moved(TgState *to, TgState *from, const char *name);
/* safetensors.c: a single file, which one rank writes. sharded.c: several files, where the path is that of
 * their index. */
TgStatus safe_file_save(const TgState *s, const char *path, const char *const *metadata, int rank);
bool safe_is_index(const char *path);
TgState *safe_index_load(TgContext *ctx, const char *path);
TgStatus safe_index_save(const TgState *s, const char *path, const TgSafeOptions *o);
struct json_t;
struct json_t *safe_index_metadata(const Source *s); /* {"__metadata__": that of the index} */
#endif
