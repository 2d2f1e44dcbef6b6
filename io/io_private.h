/* io_private.h: what the readers share: bytes of a u8 tensor, errors, names -> numbers, memory that grows,
 * values under construction. */
#ifndef TG_IO_PRIVATE_H
#define TG_IO_PRIVATE_H
#include "tg_io.h"
#include <stdarg.h>
#include <string.h>

/* The bytes of a file as the processor sees them: where they are on devices that use the host's memory, a
 * copy elsewhere. */
typedef struct Source {
  TgContext *ctx;
  TgTensor *t;
  const uint8_t *p;
  uint64_t n;
  uint8_t *copy;
  const char *what, *name;
} Source;

/* false: an error in the context. name may be NULL */
bool source_open(Source *s, TgTensor *t, const char *what, const char *name);
void source_close(Source *s);
/* elements of dtype at bytes at.. of a file, in shape: a view. at + size must lie inside (checked). */
TgTensor *source_view(const Source *s, uint64_t at, TgDType d, int n, const int64_t *dims);
/* Records status with "what: name: text" unless there is an error already; false. */
bool io_fail(const Source *s, TgStatus status, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool ctx_fail(TgContext *ctx, TgStatus status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Whether sums of tg_dot4 take less than those of tg_dot2 where t is, if no byte of x is more than `most`. */
bool tensor_has_dot4(const TgTensor *t, int most);
/* x * y + z, of one dtype. */
TgTensor *tensor_mulacc(TgTensor *x, TgTensor *y, TgTensor *z);
TgTensor *file_tensor(TgContext *ctx, const char *path);

/* A file that takes its place when it is whole. begin false: errno. end(ok false) takes what was written
 * away; false: nothing changed, errno says why. */
typedef struct NewFile {
  int fd;
  bool elsewhere;               /* another rank writes it: nothing is done here */
  bool in_place;                /* no file, as a device is: written to as it is */
  char place[4096], name[4200]; /* that it takes; of the new file beside it */
} NewFile;

bool file_begin(NewFile *f, const char *path);
bool file_write(NewFile *f, const void *p, size_t n);
bool file_end(NewFile *f, bool ok);
/* The same for what every rank has: one writes it, and all go on when it is there. Why not, errno of that rank
 * says. */
bool file_begin_once(TgContext *ctx, NewFile *f, const char *path, int rank);
bool file_end_once(TgContext *ctx, NewFile *f, bool ok);

static inline bool inside(uint64_t at, uint64_t n, uint64_t total) { return at <= total && n <= total - at; }

static inline uint16_t le16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }

static inline uint32_t le32(const uint8_t *p) { return (uint32_t)le16(p) | (uint32_t)le16(p + 2) << 16; }

static inline uint64_t le64(const uint8_t *p) { return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32; }

/* at, n elements of size bytes, grown so that one more fits; NULL: out of memory, and at is as it was. */
void *io_grow(TgContext *ctx, void *at, size_t n, size_t *cap, size_t size);

uint64_t io_random(uint64_t *state); /* loader.c: the next of the words that begin with state */

/* archive.c: whether the bytes begin as one. */
bool zip_is(const Source *s);
bool tar_is(const Source *s);
/* *parts (NULL: not wanted; else to be given back by tg_free, NULL too where the reader fails): of each file,
 * in order, where it stands in s; p NULL: it was unpacked. */
TgState *zip_read(const Source *s, Source **parts);
TgState *tar_read(const Source *s, Source **parts);

/* names -> numbers. Names are not copied and not ended: they must stay. */
typedef struct Name {
  const char *at;
  size_t n;
  size_t value;
} Name;

typedef struct Index {
  Name *slot;
  size_t n, cap;
} Index;

/* false: out of memory; a name that was there stays */
bool index_put(TgContext *ctx, Index *x, const char *name, size_t n, size_t value, bool *was_there);
bool index_find(const Index *x, const char *name, size_t n, size_t *value);
void index_free(TgContext *ctx, Index *x);

/* A tree lives in blocks that end with its root. */
struct TgValue {
  TgKind kind;
  uint32_t unused;
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

/* root first: a TgValue * of a reader is a Doc *. more: trees that this one has values of, which end with it.
 */
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
/* a list of n, or a map of n: key, value, key, value */
bool doc_items(Doc *d, TgValue *v, TgKind kind, size_t n);
bool doc_tensor(Doc *d, TgValue *v, TgTensor *t); /* t is kept and ends with the tree; NULL: false */
void doc_free(Doc *d);
TgContext *state_context(const TgState *s);
/* t is kept and ends with s; NULL: false. A name that is there: false, no error */
bool state_own(TgState *s, const char *name, size_t n, TgTensor *t);
/* What `from` owns by that name ends with `to` now. False: there is none, or it is in `to` already. */
bool state_moved(TgState *to, TgState *from, const char *name);
/* safetensors.c: one file, written by a rank. sharded.c: several, where the path is that of their index. */
TgStatus safe_file_save(const TgState *s, const char *path, const char *const *metadata, int rank);
bool safe_is_index(const char *path);
TgState *safe_index_load(TgContext *ctx, const char *path);
TgStatus safe_index_save(const TgState *s, const char *path, const TgSafeOptions *o);
struct json_t;
struct json_t *safe_index_metadata(const Source *s); /* {"__metadata__": the index's} */
#endif
