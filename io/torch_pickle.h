/* torch_pickle.h: a pickle as objects, for torch.c. A pickle is a program; running it builds lists, maps,
 * numbers and text. A few dozen globals are known, each as one of a dozen enum values; nothing is imported
 * or called. Objects are numbered, and are not freed one by one. */
#ifndef TG_TORCH_PICKLE_H
#define TG_TORCH_PICKLE_H
#include "io_private.h"

typedef enum Kind {
  O_NONE,
  O_BOOL,
  O_INT,
  O_FLOAT,
  O_STR,
  O_TUPLE,
  O_LIST,
  O_DICT,
  O_GLOBAL,
  O_PERSISTENT,
  O_TENSOR,
  O_PARAMETER,
  O_OTHER
} Kind;

typedef enum Global {
  G_STORAGE,
  G_DTYPE,
  G_TENSOR_TYPE,
  G_ORDERED_DICT,
  G_REBUILD,
  G_REBUILD_V2,
  G_REBUILD_V3,
  G_REBUILD_PARAMETER,
  G_PARAMETER,
  G_SIZE,
  G_SET,
  G_DEVICE
} Global;

/* n: the number of items (a dict has 2n), of bytes, or the index of a global in the table of globals. */
typedef struct Obj {
  uint8_t kind;
  bool done, open;
  uint32_t n;

  union {
    int64_t i;
    double f;
    const uint8_t *s;
    uint32_t *at;
  } u;

  size_t cap;
} Obj;

typedef struct Storage {
  const Source *in;
  uint64_t at, nbytes;
} Storage;

typedef struct Pickle {
  const Source *s; /* for error messages */
  TgContext *ctx;
  Obj *obj;
  size_t nobj, cap;
  int64_t *stack;
  size_t depth, scap;
  uint32_t *memo;
  size_t nmemo, mcap;
  uint32_t none;           /* number of the object None; False is the next, True the one after */
  Index storages, tensors; /* storages: keys -> indices in storage; tensors: keys -> O_TENSOR objects (tar) */
  Storage *storage;
  size_t nstorage, stcap;
} Pickle;

/* Records TG_ERR_VALUE, that the pickle is damaged, and how. Returns false. */
bool pickle_bad(Pickle *p, const char *what);
bool pickle_no_memory(Pickle *p);
/* Runs one pickle at b[*at..end). Afterwards *at is the place after it, and *out the object that it
 * leaves. */
bool pickle_run(Pickle *p, const uint8_t *b, uint64_t *at, uint64_t end, uint32_t *out);
bool pickle_new(Pickle *p, Obj o, uint32_t *id);
bool pickle_add(Pickle *p, uint32_t to, uint32_t item); /* adds an item to a list, dict, tuple or tensor */
bool pickle_is(const Pickle *p, uint32_t id, Global g);
TgDType pickle_dtype(const Pickle *p, uint32_t id);       /* the dtype of a global that names one */
bool pickle_storage(Pickle *p, TgDType d, uint32_t *out); /* makes a global that names the storages of d */

static inline bool pickle_seq(const Pickle *p, uint32_t id) {
  return p->obj[id].kind == O_TUPLE || p->obj[id].kind == O_LIST;
}

static inline uint32_t pickle_item(const Pickle *p, uint32_t id, uint32_t i) { return p->obj[id].u.at[i]; }
#endif
