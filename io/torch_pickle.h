/* torch_pickle.h: a pickle as objects, for torch.c. A pickle is a program; running it builds lists, maps,
 * numbers and text, and knows a dozen globals as enum values. Nothing is imported or called. Objects are
 * numbered and never freed one by one. */
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

/* n of items (a dict has 2n), bytes, or the number of a global's entry. */
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
  const Source *s; /* for errors */
  TgContext *ctx;
  Obj *obj;
  size_t nobj, cap;
  int64_t *stack;
  size_t depth, scap;
  uint32_t *memo;
  size_t nmemo, mcap;
  uint32_t none;           /* the objects None, False, True stand here, +1, +2 */
  Index storages, tensors; /* keys -> places in storage; -> O_TENSOR objects (tar) */
  Storage *storage;
  size_t nstorage, stcap;
} Pickle;

/* false, TG_ERR_VALUE: the pickle is damaged, and how */
bool pickle_bad(Pickle *p, const char *what);
bool pickle_no_memory(Pickle *p);
/* Runs one pickle at b[*at..end); *at moves behind it, *out is what it leaves. */
bool pickle_run(Pickle *p, const uint8_t *b, uint64_t *at, uint64_t end, uint32_t *out);
bool pickle_new(Pickle *p, Obj o, uint32_t *id);
bool pickle_add(Pickle *p, uint32_t to, uint32_t item); /* to a list, tuple or tensor */
bool pickle_is(const Pickle *p, uint32_t id, Global g);
TgDType pickle_dtype(const Pickle *p, uint32_t id);       /* of a global that stands for one */
bool pickle_storage(Pickle *p, TgDType d, uint32_t *out); /* the global for storages of d */

static inline bool pickle_seq(const Pickle *p, uint32_t id) {
  return p->obj[id].kind == O_TUPLE || p->obj[id].kind == O_LIST;
}

static inline uint32_t pickle_item(const Pickle *p, uint32_t id, uint32_t i) { return p->obj[id].u.at[i]; }
#endif
