/* networks.h: random network programs, written once for tinygrad-c and once, as Python, for PyTorch. A Net is
 * one program while it is built; its draws depend on the number of the program and on shapes alone, so that
 * it is the same program on every device and in every precision. */
#ifndef TG_NETWORKS_H
#define TG_NETWORKS_H
#include "tg.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NET_NODES = 160, NET_LEAVES = 40, NET_NUMEL = 3000, NET_OUTS = 96, NET_RANK = 8 };

#define NET_INFINITE 1e30 /* as the most of a value: it has infinities */

typedef struct NetText {
  char *text;
  size_t n, room;
} NetText;

void net_say(NetText *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A value on the way. most: about its largest magnitude, which rows keep in bounds. terms: it is read by
 * nothing, so the loss has it. */
typedef struct NetNode {
  TgTensor *t;
  TgDType dtype; /* in the program as it is; its exact twin has f64 there */
  double most;
  bool read;
  char name[8];
} NetNode;

/* What is noted while a program is built the first time, and looked up in all other runs of it. */
typedef struct NetRecord {
  uint64_t number;
  TgDType dtype[NET_NODES]; /* of the nodes */
  int nsteps;
  size_t at[NET_NODES]; /* leaves: where their values begin in data, by node */
  double *data;
  size_t ndata, room;
  NetText python;
  bool noted, second;
  bool all;             /* every value is compared */
  bool reads;           /* needs values while it is built, so it cannot be captured */
  const char *rows[32]; /* those that made it */
} NetRecord;

typedef struct Net {
  TgContext *ctx;
  NetRecord *record;
  uint64_t rng;
  int theme;
  bool exact;     /* floats are f64 */
  uint64_t noise; /* not 0: each value moves by about the rounding of its dtype; which way, this says */
  double loudness;
  NetNode node[NET_NODES];
  int n;
  TgTensor *leaf[NET_LEAVES]; /* floats */
  int leaf_node[NET_LEAVES], nleaves;
  TgTensor *const *given;    /* leaves that a captured function was given; NULL: they are made */
  TgTensor *made[NET_NODES]; /* the leaves, integers too */
  int ngiven;
  const char *row; /* at work */
  char fault[600]; /* "": none */
} Net;

typedef struct NetRow {
  const char *name;
  void (*make)(Net *p, const struct NetRow *row);
  TgTensor *(*one)(TgTensor *);
  TgTensor *(*two)(TgTensor *, TgTensor *);
  const char *text; /* in Python; $a and $b stand for the operands */
  int domain;       /* NetDomain of the (second) operand */
  double most;      /* of the result; 0: the operand's */
} NetRow;

typedef enum NetTheme { NET_F32, NET_F64, NET_F16, NET_BF16, NET_FP8, NET_MIXED } NetTheme;

typedef enum NetDomain { NET_ANY, NET_POSITIVE, NET_UNIT, NET_ABOVE_ONE, NET_SMALL } NetDomain;

extern const NetRow net_math[], net_move[], net_index[], net_layers[];

/* ---- drawing */
int net_below(Net *p, int n);
int net_between(Net *p, int lo, int hi);
bool net_chance(Net *p, int of); /* one time in so many */
double net_fraction(Net *p);     /* 0 .. 1 */

/* ---- values. NULL: there is none such, or it became too large; the row then gives up, which is fine. */
NetNode *net_pick(Net *p); /* a float */
NetNode *net_pick_in(Net *p, int domain);
NetNode *net_filled(Net *p, int rank); /* a float that has elements, of at least so many axes */
NetNode *net_in(Net *p, NetNode *x, int domain);
NetNode *net_as_rank(Net *p, NetNode *x, int rank);
NetNode *net_fresh(Net *p, int n, const int64_t *d); /* a float leaf */
NetNode *net_beside(Net *p, NetNode *x);             /* a float that broadcasts with x */
bool net_broadcasts(const NetNode *a, const NetNode *b);
NetNode *net_places(Net *p, int n, const int64_t *d, int64_t lo, int64_t hi); /* integers lo .. hi - 1 */
NetNode *net_order(Net *p, int n, const int64_t *d, int axis, int64_t size);  /* all different along axis */
NetNode *net_mask(Net *p, int n, const int64_t *d);                           /* bool leaf */
NetNode *net_wants(Net *p, bool integer); /* a bool or an integer that was made; NULL: none */
TgDType net_dtype(Net *p, TgDType dtype); /* f64 in the twin, where it is a float */
bool net_is_float(const NetNode *x);

/* ---- results: t, which is about `most` at most, and the same in Python; adds a node */
NetNode *net_out(Net *p, TgTensor *t, double most, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
const char *net_sizes(int n, const int64_t *d); /* "(2, 3,)"; good for some calls */
const char *net_axes(TgAxes a);

/* ---- whole programs */
typedef struct NetOut {
  TgTensor *t;
  TgDType dtype;
  char what[24];
} NetOut;

/* The program of record->number; false: p->fault says why not. What is compared: values, the loss, gradients,
 * gradients of gradients. */
bool net_build(Net *p, NetOut *out, int *nout);
int net_theme(uint64_t number);      /* which dtypes it has */
bool net_wants_f64(uint64_t number); /* has floats of f64, which not every device has */

/* ---- running and judging */
/* Half the distance between numbers of a dtype at 1, and below its normal numbers. */
void net_rounding(TgDType dtype, double *relative, double *absolute);

typedef struct NetValue {
  char what[24];
  TgDType dtype;
  int64_t count;
  double *v;
} NetValue;

typedef struct NetResult {
  NetValue value[NET_OUTS];
  int n;
  char fault[600]; /* "": it ran */
} NetResult;

/* What is right, and how far rounding moves it; count is of all outputs together. undecided: it cannot be
 * said
 */
typedef struct NetReference {
  double *v, *far;
  double scale[3]; /* the largest value, gradient and second gradient, on the way too where that is known */
  int64_t count;
  bool undecided;
} NetReference;

/* How a program is run. noise: not 0, in the twin, moves each value. captured: by tg_jit, the third run. */
typedef struct NetRun {
  const char *device; /* EMU:CUDA is CUDA on the emulated GPU */
  bool exact, captured;
  uint64_t noise;
  double loudness;
} NetRun;

void net_record(NetRecord *r,
                NetResult *out); /* builds it once, and notes what it is; out has faults alone */
void net_run(NetRecord *const *r, int n, NetRun how, NetResult *out); /* n programs as one schedule */
void net_end(void);                                                   /* closes all devices, ends PyTorch */
void net_result_free(NetResult *r);
void net_record_free(NetRecord *r);
/* By the twin on INTERP in f64, moved so many times. */
bool net_twin(NetRecord *r, int samples, double most, NetReference *out, char *fault, size_t room);
/* By PyTorch; false: it could not be asked. Programs that it refuses have count -1. */
bool net_torch(NetRecord *const *r, int n, int samples, double most, NetReference *out);
bool net_has_torch(void);
void net_reference_free(NetReference *r);
/* The place of the first value that is wrong, -1: none. careful: the reference was moved much. *decided
 * counts values of which less than a hundredth is in doubt. */
int64_t net_wrong(const NetResult *got, const NetReference *want, bool careful, int *output,
                  int64_t *decided);
#endif
