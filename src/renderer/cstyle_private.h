/* cstyle_private.h: shared by the files of the C-style renderer. cstyle.c writes statements; scalar.c and
 * vector.c the expressions in them; lanes.c both for arrays of lanes; operands.c the names, constants and types that expressions are made of.
 */
#ifndef TG_CSTYLE_PRIVATE_H
#define TG_CSTYLE_PRIVATE_H
#include "uop/matrix.h"
#include "renderer/cstyle.h"

enum { NTMP = 64, TMP_LEN = 192, MOST_NAMED_LANES = 16, TYPE_LEN = 8 };

typedef struct C {
  const CLang *lang;
  const Linear *lin;
  TgError *err;
  Str head, body;
  Map helpers; /* hash of a helper's name -> 1 */
  int *pos;    /* by UOp: place in the list and 1, or 0 */
  size_t npos;
  uint8_t *mask_bytes; /* per place: element size of a bool vector's mask */
  int *number;         /* per place: of its name, v12 or acc3 */
  int depth, tmp_at, nvar, nval, nreg, nlocal;
  uint8_t *copied; /* by UOp: a load that is a copy of its own, or NULL */
  bool copies;     /* there is one */
  bool groups;     /* there is a unit of four warps (groups.c): .. */
  bool at_work;    /* .. its products may be under way, .. */
  bool begun;      /* .. a group of them has begun and not ended; */
  int side;        /* .. steps left of an instruction that was written */
  uint8_t *within; /* per place: a vector whose text stands where it is used, if it is short */
  int *text_at;    /* per place: where in `texts` that is, and 1; or 0 */
  Str texts;
  const UOp *written;           /* a store that was written as the start of its register */
  bool failed, meets_in_device; /* meets_in_device: a buffer is stored to and touched by another statement */
  char vector[DT_COUNT][MOST_NAMED_LANES + 1][TYPE_LEN]; /* names of types */
  char tmp[NTMP][TMP_LEN]; /* operand texts live in this ring while one statement is written */
} C;

const char *cs_stored(DType d); /* the type of an element of memory */

static inline DType cs_int_of(int nbytes) {
  return nbytes == 1 ? DT_I8 : nbytes == 2 ? DT_I16 : nbytes == 4 ? DT_I32 : DT_I64;
}

static inline DType cs_unsigned_of(DType d) {
  size_t n = dtype_size(d);
  return n == 1 ? DT_U8 : n == 2 ? DT_U16 : n == 4 ? DT_U32 : DT_U64;
}

/* ---- operands.c. A text lives until NTMP others are made; a name that is "first used" is defined in front
 * of the kernel. */
bool cs_fail(C *c, const UOp *u, const char *why); /* false; the first reason is kept */
void cs_fmt(Str *s, const char *f, ...);           /* %s and %d alone: a tenth of the cost of printf */
void cs_put(C *c, const char *f, ...);             /* the same, onto the kernel's body */
const char *cs_text(C *c, const char *f, ...);     /* the same, as an operand's text */
extern const char *const cs_scalar[DT_COUNT];      /* the type of one element, by cs_storage */
const char *cs_type(C *c, DType d, int lanes);
/* A function of vectors: in tpl, $F is its name, $N its lanes, $A .. $Z the texts m[0] .. m[25]. */
void cs_helper(C *c, const char *name, const char *tpl, const char *const m[26], int lanes);
#define M(letter) [(letter) - 'A'] =
const char *cs_const(C *c, DType d, Scalar v);
int cs_place(C *c, const UOp *u);       /* in the list; fails where u comes later */
const char *cs_ref(C *c, const UOp *u); /* a value or a memory by its name */
const char *cs_splat(C *c, DType d, int lanes, const char *scalar);
bool cs_is_mask(C *c, const UOp *u);       /* GNU C: a vector of bools is 0 / -1 integers .. */
int cs_mask_size(C *c, const UOp *u);      /* .. of so many bytes each, */
const char *cs_any(C *c, const UOp *cond); /* whether it holds, of any lane */
bool cs_is_splat_mask(C *c, const UOp *u);
const char *cs_mask(C *c, const UOp *u, int nbytes);    /* made as wide as what it selects */
const char *cs_zero(C *c, const UOp *u);                /* of its type */
void cs_line(C *c);                                     /* begins one */
void cs_put_before(C *c, size_t at, const char *front); /* into the body */
/* ---- lanes.c: vectors as arrays of lanes. False: out of memory. */
bool cs_find_lanes(C *c, TgMem *mem);
bool cs_has_lanes(const C *c, const UOp *u);
const char *cs_lane(C *c, const UOp *u, const char *lane);
void cs_lanes_value(C *c, const UOp *u, int at); /* the statement of the UOp at a place, if it has one */
void cs_lanes_store(C *c, const UOp *u);
void cs_lanes_if(C *c, const UOp *u);
/* ---- copies.c: loads that a GPU makes by itself. False: out of memory. */
bool cs_find_copies(C *c, TgMem *mem);
bool cs_is_copied(const C *c, const UOp *load);

/* The FRAGMENT of which a vector is a word, or NULL. */
static inline const UOp *cs_word_of(const UOp *v) {
  return v->op == OPS_GEP && v->src[0]->op == OPS_FRAGMENT ? v->src[0] : NULL;
}

void cs_copy(C *c, const UOp *store); /* its statement */

/* ---- groups.c: steps of units of four warps, which read shared memory by themselves and are waited for. */
static inline bool cs_is_group(const UOp *u) { /* a WMMA of such a unit */
  return HAS_GRIDS && u->op == OPS_WMMA && matrix_in_shared(&matrix_shapes[u->arg.i]);
}

void cs_find_groups(C *c);
const UOp *cs_sum_of(C *c, const UOp *u); /* the register that it steps */
void cs_group(C *c, const UOp *u, int at);
void cs_group_waits(C *c, const UOp *u, int at); /* in front of the statement at a place */
/* ---- amx.c, dots.c: the statement of a STORE of a WMMA whose operands are memory, and what it needs. The
 * functions of both have these arguments. */
void cs_tiles(C *c, const UOp *store);
void cs_dots(C *c, const UOp *store);
void cs_block_call(C *c, const char *name, const UOp *store);
/* The name of a function (table, places): lanes of a table of 16 bytes of d by as many places below 16. */
const char *cs_lookup(C *c, DType d, int lanes);
/* ---- scalar.c: the value of an elementwise op, written onto the body. a, b, e: texts of the operands. */
bool cs_infix(Ops op); /* op_c is an operator, not the name of a function of the prelude */
/* no: "!" or, on masks, "~" */
void cs_bool_alu(C *c, const UOp *u, const char *a, const char *b, const char *e, const char *no);
void cs_put_table(C *c, const UOp *lookup4); /* the 16 bytes, in braces */
void cs_cast(C *c, DType to, DType from, const char *a);
void cs_scalar_alu(C *c, const UOp *u, const char *a, const char *b, const char *e);
/* ---- vector.c: the same for vectors of GNU C, with mask_bytes set for results of bool */
void cs_vector_alu(C *c, const UOp *u);
#endif
