/* interp_compile.c: translates linear UOps for the reference device. In: a list. Out: instructions whose
 * operands are numbers of slots, or the reason why INTERP refuses the list. */
#include "runtime/interp.h"
#include "uop/matrix.h"
#include <stdio.h>
#include <string.h>

/* ---- flatten */
typedef struct Flat {
  Program *p;
  Map slots, mems;
  TgError *err;
  const Linear *lin;
  bool oom;
} Flat;

static TgStatus refuse(Flat *f, const UOp *u, const char *why) {
  if (f->oom) return error_no_memory(f->err, "INTERP"); /* the actual reason */
  return error_set(f->err, TG_ERR_INTERNAL, "INTERP: kernel %s: %s %s x%d: %s", f->lin->name,
                   op_name((Ops)u->op), dtype_name((DType)u->dtype), u->lanes, why);
}

/* Returns the first slot of a value. -1: it is not defined before, or has another number of lanes. */
static int slot_of(Flat *f, const UOp *u, int need_lanes) {
  uint64_t v;
  u = uop_base(u);
  if (need_lanes && u->lanes != need_lanes) return -1;
  if (map_get(&f->slots, (uint64_t)(uintptr_t)u, &v)) return (int)v;
  Loose *l = u->op == OPS_CONST ? arena_alloc(&f->p->arena, sizeof *l) : NULL;
  if (!l) {
    f->oom |= u->op == OPS_CONST;
    return -1;
  }
  *l = (Loose){f->p->nslot, u->lanes, u->arg.v, f->p->loose};
  f->p->loose = l;
  f->p->nslot += u->lanes;
  f->oom |= !map_put(&f->slots, (uint64_t)(uintptr_t)u, (uint64_t)l->slot);
  return l->slot;
}

static TgStatus flatten_access(Flat *f, const UOp *u, Ins *in) {
  bool store = u->op == OPS_STORE;
  const UOp *x = uop_base(u->src[0]);
  if (store && u->nsrc < 2) return refuse(f, u, "no value");
  in->lanes = store ? u->src[1]->lanes : u->lanes;
  in->dtype = store ? u->src[1]->dtype : u->dtype;
  in->gate = -1;
  if (x->op == OPS_DEFINE_REG) {
    if (x->lanes != in->lanes || x->dtype != in->dtype) return refuse(f, u, "register of another type");
    in->reg = true;
    in->src[0] = slot_of(f, x, 0);
    in->nsrc = 1;
    if (store) {
      in->src[1] = slot_of(f, u->src[1], in->lanes);
      in->nsrc = 2;
    }
  } else {
    uint64_t m;
    if (x->op != OPS_INDEX || x->nsrc < 2 || x->nsrc != (x->arg.i ? 3 : 2))
      return refuse(f, u, "neither a flat INDEX nor a register");
    const UOp *base = uop_base(x->src[0]);
    if (!map_get(&f->mems, (uint64_t)(uintptr_t)base, &m))
      return refuse(f, base, "not a memory defined before");
    if (base->dtype != in->dtype) return refuse(f, u, "dtype differs from its buffer's");
    in->mem = (int)m;
    in->src[0] = slot_of(f, x->src[1], 1);
    in->nsrc = 1;
    if (dtype_is_float((DType)x->src[1]->dtype)) return refuse(f, u, "offset is not an integer");
    if (store || (x->arg.i && u->nsrc > 1)) {
      in->src[1] = slot_of(f, u->src[1], in->lanes);
      in->nsrc = 2;
    }
    if (x->arg.i && (in->gate = slot_of(f, x->src[2], 1)) < 0)
      return refuse(f, u, "gate is not defined before, or has lanes");
  }
  for (int i = 0; i < in->nsrc; i++)
    if (in->src[i] < 0) return refuse(f, u, "operand not defined before, or of other lanes");
  return TG_OK;
}

static bool in_memory(const UOp *u) {
  return u->op == OPS_WMMA && matrix_in_memory(&matrix_shapes[u->arg.i]);
}

/* Operands of a WMMA whose operands are in shared memory: the offsets of a and b, what is added to, the
 * memories of a and b. */
enum { SHARED_PARTS = 5 };

static bool in_shared(const UOp *u) {
  return u->op == OPS_WMMA && matrix_in_shared(&matrix_shapes[u->arg.i]);
}

static TgStatus flatten_shared(Flat *f, const UOp *u, Ins *in) {
  in->value.i = u->arg.i;
  in->nsrc = SHARED_PARTS;
  if (!(in->src = arena_array(&f->p->arena, int, SHARED_PARTS))) return f->oom = true, TG_OK;
  for (int i = 0; i < 2; i++) {
    const UOp *x = uop_base(u->src[i]);
    uint64_t m;
    if (x->op != OPS_INDEX || !map_get(&f->mems, (uint64_t)(uintptr_t)uop_base(x->src[0]), &m))
      return refuse(f, u, "no place in a memory defined before");
    in->src[i] = slot_of(f, x->src[1], 1);
    in->src[3 + i] = (int)m;
  }
  in->src[2] = slot_of(f, u->src[2], u->lanes);
  return in->src[0] < 0 || in->src[1] < 0 || in->src[2] < 0 ? refuse(f, u, "operand not defined before")
                                                            : TG_OK;
}

static TgStatus flatten_block_of_sums(Flat *f, const UOp *u, Ins *in) {
  const UOp *sum = u->src[1], *at[3] = {u->src[0], sum->src[0], sum->src[1]};
  in->op = OPS_WMMA;
  in->value.i = sum->arg.i;
  in->nsrc = BLOCK_PARTS;
  in->dtype = sum->dtype;
  if (!(in->src = arena_array(&f->p->arena, int, BLOCK_PARTS))) return f->oom = true, TG_OK;
  for (int i = 0; i < 3; i++) {
    const UOp *x = uop_base(at[i]);
    uint64_t m;
    bool place = x->op == OPS_INDEX && x->nsrc == 2;
    if (!place || !map_get(&f->mems, (uint64_t)(uintptr_t)uop_base(x->src[0]), &m) ||
        f->p->mem[m].dtype != (DType)x->dtype)
      return refuse(f, u, "no place in a memory defined before");
    in->src[i] = slot_of(f, x->src[1], 1);
    in->src[BLOCK_MEMORY + i] = (int)m;
    if (in->src[i] < 0) return refuse(f, u, "offset not defined before");
  }
  for (int i = BLOCK_ROWS; i < BLOCK_PARTS; i++)
    in->src[i] = (int)sum->src[i - BLOCK_ROWS + 2]->arg.v.i;
  return TG_OK;
}

/* A loop or a condition opens a block; END or ENDIF closes the innermost one. */
static TgStatus flatten_block(Flat *f, const UOp *u, int at, Ins *in, int *open, int *depth) {
  if (u->op == OPS_RANGE || u->op == OPS_IF) {
    bool loop = u->op == OPS_RANGE;
    if (loop) in->value.i = u->arg.range.type == AXIS_THREAD;
    in->nsrc = loop ? 1 : u->src[0]->lanes;
    if ((in->src[0] = slot_of(f, u->src[0], in->nsrc)) < 0)
      return refuse(f, u, loop ? "extent not defined before" : "condition not defined before");
    if (!loop || !in->value.i) open[(*depth)++] = at;
    return TG_OK;
  }
  const UOp *o = u->src[0];
  if (u->op == OPS_END && o->op == OPS_RANGE && o->arg.range.type == AXIS_THREAD) {
    in->jump = -1;
    return TG_OK;
  }
  int from = *depth ? open[--*depth] : -1;
  if (from < 0 || f->lin->at[from] != o) return refuse(f, u, "closes something else than the innermost loop");
  in->jump = from;
  f->p->at[from].jump = at;
  return TG_OK;
}

static TgStatus flatten_alu(Flat *f, const UOp *u, Ins *in) {
  bool vector = u->op == OPS_VECTORIZE;
  if (!vector && !op_is_alu((Ops)u->op)) return refuse(f, u, "no linear program may contain it");
  if (vector && u->nsrc != 1 && u->nsrc != u->lanes) return refuse(f, u, "sources do not match the lanes");
  if (u->op == OPS_LOOKUP4) {
    uint8_t *table = arena_array(&f->p->arena, uint8_t, 16);
    for (int i = 0; table && i < 16; i++)
      table[i] = (uint8_t)u->arg.ints->v[i];
    f->oom |= !table;
    in->value.i = (intptr_t)table;
  }
  in->nsrc = u->nsrc;
  in->from = u->nsrc ? u->src[u->op == OPS_WHERE]->dtype : u->dtype;
  for (int i = 0; i < u->nsrc; i++)
    if ((in->src[i] = slot_of(f, u->src[i], vector ? 1 : u->lanes)) < 0)
      return refuse(f, u, "operand not defined before, or of other lanes");
  return TG_OK;
}

/* Fills in what op u does, except for the slot of its value. */
static TgStatus flatten_op(Flat *f, const UOp *u, int at, Ins *in, int *open, int *depth) {
  switch (u->op) {
  case OPS_LOAD: return flatten_access(f, u, in);
  case OPS_STORE:
    if (u->nsrc > 1 && in_memory(u->src[1])) return flatten_block_of_sums(f, u, in);
    return flatten_access(f, u, in);
  case OPS_DEFINE_REG:
  case OPS_PREFETCH:
  case OPS_BARRIER: return TG_OK;
  case OPS_VAR:
    in->value.i = 0;
    for (int i = 0; i < at; i++)
      in->value.i += f->lin->at[i]->op == OPS_VAR;
    return TG_OK;
  case OPS_RANGE:
  case OPS_IF:
  case OPS_END:
  case OPS_ENDIF: return flatten_block(f, u, at, in, open, depth);
  case OPS_SHUFFLE:
    in->value.i = u->arg.i;
    in->nsrc = 1;
    if ((in->src[0] = slot_of(f, u->src[0], u->lanes)) < 0)
      return refuse(f, u, "operand not defined before, or of other lanes");
    return TG_OK;
  case OPS_FRAGMENT:
    in->value.i = u->arg.i;
    in->nsrc = 1;
    if ((in->src[0] = slot_of(f, u->src[0], 0)) < 0) return refuse(f, u, "operand not defined before");
    return TG_OK;
  case OPS_WMMA:
    if (in_shared(u)) return flatten_shared(f, u, in);
    in->value.i = u->arg.i;
    in->nsrc = u->nsrc;
    for (int i = 0; i < u->nsrc; i++)
      if ((in->src[i] = slot_of(f, u->src[i], 0)) < 0) return refuse(f, u, "operand not defined before");
    return TG_OK;
  case OPS_LOOKUP:
    in->nsrc = 2;
    for (int i = 0; i < 2; i++)
      if ((in->src[i] = slot_of(f, u->src[i], u->src[i]->lanes)) < 0)
        return refuse(f, u, "operand not defined before");
    return TG_OK;
  case OPS_SHUFFLEVECTOR: { /* becomes a VECTORIZE of the slots of existing lanes */
    int lanes = u->src[0]->lanes, from[2] = {slot_of(f, u->src[0], 0), slot_of(f, u->src[1], lanes)};
    if (from[0] < 0 || from[1] < 0) return refuse(f, u, "operand not defined before, or of other lanes");
    in->op = OPS_VECTORIZE;
    in->nsrc = u->lanes;
    if (!(in->src = arena_array(&f->p->arena, int, u->lanes))) return f->oom = true, TG_OK;
    for (int l = 0; l < u->lanes; l++)
      in->src[l] = from[u->arg.ints->v[l] / lanes] + (int)(u->arg.ints->v[l] % lanes);
    return TG_OK;
  }
  case OPS_GEP:
    in->value.i = u->arg.i;
    in->nsrc = 1;
    if ((in->src[0] = slot_of(f, u->src[0], 0)) < 0 || u->arg.i < 0 || u->arg.i + u->lanes > u->src[0]->lanes)
      return refuse(f, u, "lanes out of range");
    return TG_OK;
  case OPS_SPECIAL:
    if (u->arg.special.dim < 0 || u->arg.special.dim > 2) return refuse(f, u, "no such axis");
    in->value.i = u->arg.special.dim + (u->arg.special.local ? 0 : 3);
    return TG_OK;
  default: return flatten_alu(f, u, in);
  }
}

/* A value has a slot for each lane. Memories and constants get their numbers when they are first met. */
static TgStatus flatten_one(Flat *f, const UOp *u, int at, int *open, int *depth) {
  Program *p = f->p;
  Ins *in = &p->at[at];
  *in = (Ins){.op = u->op, .dtype = u->dtype, .lanes = u->lanes, .gate = -1};
  in->src = arena_array(&p->arena, int, TG_MAX(u->nsrc, 2));
  if (!in->src) {
    f->oom = true;
    return TG_OK;
  }
  if (u->op == OPS_PARAM || u->op == OPS_DEFINE_LOCAL) {
    p->mem[p->nmem] =
        (Memory){(DType)u->dtype, u->arg.param.nelem, u->op == OPS_PARAM ? (int)u->arg.param.slot : -1};
    f->oom |= !map_put_ptr(&f->mems, u, p->nmem++);
    return TG_OK;
  }
  if (in_memory(u)) in->op = OPS_SINK; /* the STORE of this WMMA computes it */
  if (u->op == OPS_INDEX || u->op == OPS_AFTER || in->op == OPS_SINK) return TG_OK;
  if (u->op == OPS_CONST && slot_of(f, u, 0) >= 0) {
    in->op = OPS_SINK;
    return TG_OK;
  }
  bool value = u->dtype != DT_VOID;
  if (value && u->op != OPS_CONST) {
    in->dst = p->nslot;
    p->nslot += u->lanes;
  }
  TgStatus st = flatten_op(f, u, at, in, open, depth);
  if (value && !st) f->oom |= !map_put(&f->slots, (uint64_t)(uintptr_t)u, (uint64_t)in->dst);
  return st;
}

void interp_unload(Device *d, Program *p) {
  if (!p) return;
  arena_free(&p->arena);
  mem_free(d->mem, p);
}

static int memories(const Linear *lin) {
  int n = 0;
  for (int i = 0; i < lin->n; i++)
    n += lin->at[i]->op == OPS_PARAM || lin->at[i]->op == OPS_DEFINE_LOCAL;
  return n;
}

static TgStatus flatten(Device *d, const Linear *lin, Program **out) {
  Program *p = *out = mem_alloc(d->mem, sizeof *p);
  if (!p) return error_no_memory(d->err, "INTERP");
  arena_init(&p->arena, d->mem);
  /* The arena's first block is as large as needed, because it is kept for each kernel. */
  p->arena.first = ((size_t)lin->n + 1) * (sizeof(Ins) + 3 * sizeof(int)) + 512;
  snprintf(p->name, sizeof p->name, "%s", lin->name);
  p->n = lin->n;
  p->nthread = TG_MAX(lin->nthread, 1);
  for (int i = 0; i < 3; i++) {
    p->global[i] = TG_MAX(lin->global[i], 1);
    p->local[i] = TG_MAX(lin->local[i], 1);
    p->blocks[i] = lin->blocks[i];
  }
  Flat f = {.p = p, .err = d->err, .lin = lin};
  map_init(&f.slots, d->mem), map_init(&f.mems, d->mem);
  p->at = arena_array(&p->arena, Ins, lin->n + 1);
  p->mem = arena_array(&p->arena, Memory, memories(lin) + 1);
  int *open = mem_alloc(d->mem, ((size_t)lin->n + 1) * sizeof *open), depth = 0;
  f.oom = !p->at || !p->mem || !open;
  TgStatus st = TG_OK;
  for (int i = 0; i < lin->n && !f.oom && !st; i++)
    st = flatten_one(&f, lin->at[i], i, open, &depth);
  if (!st && f.oom) st = error_no_memory(d->err, "INTERP");
  if (!st && depth)
    st = error_set(d->err, TG_ERR_INTERNAL, "INTERP: kernel %s: a loop is not closed", lin->name);
  map_free(&f.slots), map_free(&f.mems), mem_free(d->mem, open);
  return st;
}

TgStatus interp_compile(Device *d, const KernelSpec *k, int n, Program **out) {
  TgStatus st = TG_OK;
  for (int i = 0; i < n; i++)
    out[i] = NULL;
  for (int i = 0; i < n && !st; i++) {
    const Linear *lin = kernel_list(&k[i]);
    if (!lin) st = error_no_memory(d->err, "INTERP");
    if (!st) st = kernel_launches(d, &k[i]);
    if (!st) st = flatten(d, lin, &out[i]);
  }
  if (st)
    for (int i = 0; i < n; i++) {
      interp_unload(d, out[i]);
      out[i] = NULL;
    }
  else
    d->kernels_compiled += (uint64_t)n;
  return st;
}
