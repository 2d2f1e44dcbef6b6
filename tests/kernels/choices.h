/* choices.h: the small programs of choices.def, and machines to plan them for. Nothing is run: a device NULL
 * plans and renders. */
#ifndef TG_CHOICES_H
#define TG_CHOICES_H
#include "codegen/codegen.h"
#include "engine/engine.h"
#include "schedule/schedule.h"
#include "tg.h"

enum { CHOICE_OUTPUTS = 3 };

typedef struct Choice {
  const char *name;
  int (*build)(TgContext *c, TgTensor **out); /* how many tensors; NULL among them after an error */
  const char *section; /* that begins here, which has no name and no tensors; else NULL */
  const char *opts;    /* for its kernels, in place of those that are chosen; or NULL */
} Choice;

typedef struct Machine {
  const char *name, *device;
  void (*change)(Target *t); /* what it has instead of what the device plans for; NULL: nothing */
} Machine;

extern const Choice choices[];
extern const Machine machines[];
extern const int choice_count, machine_count;

/* A context of that machine; an error is in tg_error. mem: as context_open. */
TgContext *machine_open(const Machine *m, TgMem mem);

/* The schedule of what a program computes. explain: NULL, or where both sides of each join are written. */
TgStatus choice_schedule(TgContext *c, TgTensor *const *t, int n, Str *explain, Schedule *out);

/* One kernel of it. opts: NULL, or a list in place of the chosen one. costs: NULL, or where each list of opts
 * that was considered is written. */
typedef struct Lowered {
  Str text, opts;
  char name[96];
  int threads, grid[3], block[3];
  int64_t local_bytes;
} Lowered;

TgStatus choice_lower(TgContext *c, const Schedule *s, int k, const char *opts, Str *costs, Prepack *prepack,
                      Lowered *out);
void lowered_free(Lowered *l);

/* Random changes of a list of opts. In: what an opt more may be, and the numbers of loops and of buffers that
 * it may name. */
enum { LONGEST_LIST = 600 };

typedef struct ListChanges {
  const char *const *ops;
  unsigned nops, nloops, nbuffers; /* buffers: 1 .. nbuffers are read */
} ListChanges;

unsigned list_draw(unsigned *seed);
/* One thing is changed: an opt less, a number doubled or halved, two opts the other way round, one more. */
void list_changed(char list[LONGEST_LIST], const ListChanges *may, unsigned *seed);
#endif
