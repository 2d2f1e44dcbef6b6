/* exchanges.c: what is copied between devices, for tg_explain. In: exchanges, when the front end writes
 * them as copies; each copy that is made; and the kernels beside which it runs in a captured function.
 * Out: a row for each kind of exchange: its devices, bytes, time by TG_LINKS and as measured, and the
 * share that kernels hide. A copy is identified by its node's hash, which depends on the memory that it
 * copies. */
#include "engine/inside.h"
#include "tensor/front.h"
#include <stdio.h>

enum { DEEPEST = 256, MOST_EXCHANGES = 1024, MOST_COPIES = 1 << 16, ROWS_SHOWN = 24 };

static uint64_t key_of(const UOp *u) { return (uint64_t)u->hash_high << 32 | u->hash; }

static int64_t bytes_of(TgContext *ctx, const UOp *u) {
  int64_t n = dim_product(ctx->store, u->shape);
  return dim_symbolic(n) ? 0 : n * (int64_t)dtype_size((DType)u->dtype);
}

double link_us(const TgContext *ctx, int from, int to, double nbytes) {
  bool out = device_facts(ctx, from).machine != device_facts(ctx, to).machine;
  return nbytes / ctx->env.links[2 * out];
}

static double message_us(const TgContext *ctx, uint64_t devices) {
  bool out = false;
  for (uint64_t rest = devices; rest; rest &= rest - 1)
    out |= device_facts(ctx, __builtin_ctzll(rest)).machine !=
           device_facts(ctx, __builtin_ctzll(devices)).machine;
  return ctx->env.links[1 + 2 * out];
}

/* ---- collecting */
void exchanges_asked(TgContext *ctx) {
  if (ctx->exchanges) return;
  if ((ctx->exchanges = mem_alloc(&ctx->mem, sizeof *ctx->exchanges)))
    map_init(&ctx->exchanges->of, &ctx->mem), map_init(&ctx->exchanges->named, &ctx->mem);
}

void exchanges_free(TgContext *ctx) {
  if (!ctx->exchanges) return;
  vec_free(&ctx->mem, &ctx->exchanges->at), map_free(&ctx->exchanges->of);
  map_free(&ctx->exchanges->named);
  mem_free(&ctx->mem, ctx->exchanges);
  ctx->exchanges = NULL;
}

static void copy_planned(TgContext *ctx, ExchangeFacts *f, int from, int to, int64_t nbytes) {
  f->devices |= 1ull << from | 1ull << to;
  f->planned++;
  f->planned_bytes += nbytes;
  f->sends_us[from] += link_us(ctx, from, to, (double)nbytes);
}

/* Adds an exchange. Returns its number, counted from 1, or 0 if there is no room for it. */
static int exchange_new(TgContext *ctx, uint64_t key, ExchangeFacts f) {
  Exchanges *x = ctx->exchanges;
  bool room = x->at.len < MOST_EXCHANGES && vec_push(&ctx->mem, &x->at, f);
  if (!room) x->more++;
  return room && map_put(&x->of, key, x->at.len) ? (int)x->at.len : 0;
}

static int exchange_known(const Exchanges *x, uint64_t key) {
  uint64_t number;
  return map_get(&x->of, key, &number) ? (int)number : 0;
}

typedef struct Walk {
  TgContext *ctx;
  const UOp *exchange;
  int number;
  Map seen;
} Walk;

static bool is_source(const UOp *exchange, const UOp *u) {
  for (int i = 0; i < exchange->nsrc; i++) {
    const UOp *s = exchange->src[i];
    if (s == u) return true;
    for (int k = 0; s->op == OPS_MULTI && k < s->nsrc; k++)
      if (s->src[k] == u) return true;
  }
  return false;
}

/* Finds the copies of an exchange, from u down to the sources of the exchange. */
static void copies_found(Walk *w, UOp *u, int depth) {
  Exchanges *x = w->ctx->exchanges;
  if (!(u->opmask & op_bit(OPS_COPY)) || is_source(w->exchange, u) || depth > DEEPEST) return;
  if (map_get_ptr(&w->seen, u) || !map_put_ptr(&w->seen, u, u)) return;
  uint64_t from = u->op == OPS_COPY ? u->src[0]->devices : 0;
  if (from && from != 1ull << u->arg.i) {
    if (exchange_known(x, key_of(u)) || x->of.len > MOST_COPIES) return;
    if (!map_put(&x->of, key_of(u), (uint64_t)w->number)) return;
    copy_planned(w->ctx, &x->at.at[w->number - 1], __builtin_ctzll(from), (int)u->arg.i, bytes_of(w->ctx, u));
  }
  for (int i = 0; i < u->nsrc; i++)
    copies_found(w, u->src[i], depth + 1);
}

void inside_summed(TgContext *ctx, const UOp *first, const char *of) {
  uint64_t before;
  Map *named = &ctx->exchanges->named;
  if (!map_get(named, key_of(first), &before)) map_put(named, key_of(first), (uint64_t)(uintptr_t)of);
}

void inside_exchange(TgContext *ctx, const UOp *exchange, const char *way, int steps, UOp *part) {
  if (!ctx->exchanges) return;
  uint64_t key = hash_mix(key_of(exchange), exchange->op);
  ExchangeFacts f = {.op = (Ops)exchange->op, .way = way, .steps = steps, .nbytes = bytes_of(ctx, exchange)};
  if (f.op == OPS_ALLREDUCE || f.op == OPS_REDUCESCATTER) f.sum = (Ops)exchange->arg.reduce.op;
  uint64_t of = 0;
  map_get(&ctx->exchanges->named, key_of(exchange->src[0]), &of);
  f.of = (const char *)(uintptr_t)of;
  Walk w = {ctx, exchange, exchange_known(ctx->exchanges, key), {0}};
  if (!w.number && !(w.number = exchange_new(ctx, key, f))) return;
  map_init(&w.seen, &ctx->mem);
  copies_found(&w, part, 0);
  map_free(&w.seen);
}

int inside_copied(TgContext *ctx, const UOp *copy, size_t nbytes, double us) {
  Exchanges *x = ctx->exchanges;
  if (!x) return 0;
  int from = __builtin_ctzll(copy->src[0]->devices), to = (int)copy->arg.i;
  int number = exchange_known(x, key_of(copy));
  uint64_t key = hash_mix(nbytes, (uint64_t)from << 32 | (uint64_t)to);
  if (!number) number = exchange_known(x, key);
  if (!number && (number = exchange_new(ctx, key, (ExchangeFacts){.op = OPS_COPY, .way = "", .steps = 1})))
    copy_planned(ctx, &x->at.at[number - 1], from, to, x->at.at[number - 1].nbytes = (int64_t)nbytes);
  Inside *in = ctx->inside;
  if (in) in->copies++, in->copied_bytes += (int64_t)nbytes, in->copied_us += us;
  inside_copied_again(ctx, number, us);
  return number;
}

static ExchangeFacts *numbered(const TgContext *ctx, int number) {
  bool known = ctx->exchanges && number > 0 && (size_t)number <= ctx->exchanges->at.len;
  return known ? &ctx->exchanges->at.at[number - 1] : NULL;
}

void inside_copied_again(TgContext *ctx, int number, double us) {
  ExchangeFacts *f = numbered(ctx, number);
  if (f) f->copies++, f->us += us;
}

void inside_flown(TgContext *ctx, int number, const Behind *b) {
  ExchangeFacts *f = numbered(ctx, number);
  if (!f) return;
  f->copies++, f->flown++;
  f->flown_us += b->us;
  f->hidden_us += b->hidden_us;
  if (b->hidden_us > 0 && b->kernels > f->behind.kernels) f->behind = *b;
}

/* ---- reporting */
/* Whether two exchanges differ only in the memory. */
static bool is_alike(const ExchangeFacts *a, const ExchangeFacts *b) {
  return a->op == b->op && a->sum == b->sum && a->way == b->way && a->devices == b->devices &&
         a->nbytes == b->nbytes;
}

/* Sums up in *row all exchanges of the same kind as exchange i. Returns false if there is an earlier one,
 * or if nothing was planned. */
static bool row_of(const Exchanges *x, size_t i, ExchangeFacts *row) {
  const ExchangeFacts *all = x->at.at;
  *row = all[i];
  row->alike = 1;
  for (size_t k = 0; k < x->at.len; k++) {
    if (k == i || !is_alike(&all[k], &all[i])) continue;
    if (k < i) return false;
    row->alike++;
    row->planned += all[k].planned;
    row->planned_bytes += all[k].planned_bytes;
    row->copies += all[k].copies;
    row->flown += all[k].flown;
    row->us += all[k].us;
    row->flown_us += all[k].flown_us;
    row->hidden_us += all[k].hidden_us;
    if (all[k].behind.kernels > row->behind.kernels) row->behind = all[k].behind;
  }
  return row->planned > 0;
}

/* Estimated us of one exchange: what the busiest device sends, and the latency of consecutive messages. */
static double estimated_us(const TgContext *ctx, const ExchangeFacts *f) {
  double us = 0;
  for (int i = 0; i < MOST_DEVICES; i++)
    us = TG_MAX(us, f->sends_us[i]);
  return us + f->steps * message_us(ctx, f->devices);
}

/* Lists the parameters whose gradients the exchanges of a row carry: all of them as JSON, a few as text. */
static void names_put(const Exchanges *x, Str *out, const ExchangeFacts *row, bool json) {
  enum { NAMES_SHOWN = 4 };

  int n = 0;
  for (size_t i = 0; i < x->at.len; i++) {
    const ExchangeFacts *f = &x->at.at[i];
    bool told = !f->of || !is_alike(f, row);
    for (size_t k = 0; k < i && !told; k++)
      told = x->at.at[k].of == f->of && is_alike(&x->at.at[k], row);
    if (told) continue;
    bool shown = json || n < NAMES_SHOWN;
    if (shown) str_put(out, n ? ", " : json ? "" : ", of the gradients of ");
    if (json)
      str_json(out, f->of);
    else if (shown)
      str_put(out, f->of);
    n++;
  }
  if (!json && n > NAMES_SHOWN) str_printf(out, " and %d more", n - NAMES_SHOWN);
}

/* The number of exchanges that `copies` copies amount to. */
static double times_of(const ExchangeFacts *row, int64_t copies) {
  return (double)copies * (double)row->alike / (double)row->planned;
}

static void devices_put(const TgContext *ctx, Str *out, uint64_t devices, const char *quote) {
  for (uint64_t rest = devices; rest; rest &= rest - 1)
    str_printf(out, "%s%s%s%s", rest == devices ? "" : ", ", quote,
               device_facts(ctx, __builtin_ctzll(rest)).name, quote);
}

/* Returns the name of the first kernel that the copy runs beside. "": it is not known. */
static const char *behind_name(const Inside *in, const Behind *b) {
  const PlanFacts *p = b->kernels ? facts_numbered(in, b->plan) : NULL;
  return p && b->kernel < p->nkernel && p->kernel[b->kernel].name ? p->kernel[b->kernel].name : "";
}

static void hidden_put(Str *out, const Inside *in, const ExchangeFacts *row) {
  if (!row->flown_us) {
    str_put(out, "; goes when the kernels before it are done\n");
    return;
  }
  str_printf(out, "; %.0f %% hidden", 100 * row->hidden_us / row->flown_us);
  if (row->behind.kernels)
    str_printf(out, ", behind up to %d kernel%s from %s on", row->behind.kernels,
               row->behind.kernels == 1 ? "" : "s", behind_name(in, &row->behind));
  str_put(out, "\n");
}

static void row_put(const TgContext *ctx, Str *out, const Inside *in, const ExchangeFacts *row) {
  char bytes[24], moved[24];
  str_printf(out, "  %lld x %s", (long long)row->alike, op_name(row->op));
  if (row->sum) str_printf(out, " %s", op_name(row->sum));
  str_printf(out, "%s%s of %s over ", *row->way ? ", " : "", row->way, bytes_text(row->nbytes, bytes));
  devices_put(ctx, out, row->devices, "");
  double waited = times_of(row, row->copies - row->flown);
  long long copies = row->planned / row->alike;
  str_printf(out, ": %lld cop%s, %s, estimated %.1f us each; made %.0f times", copies,
             copies == 1 ? "y" : "ies", bytes_text(row->planned_bytes / row->alike, moved),
             estimated_us(ctx, row), times_of(row, row->copies));
  if (row->us && waited) str_printf(out, ", %.1f us of the host each", row->us / waited);
  names_put(ctx->exchanges, out, row, false);
  hidden_put(out, in, row);
}

const char *exchange_named(const TgContext *ctx, int exchange, const char *what, char room[160]) {
  const ExchangeFacts *f = numbered(ctx, exchange);
  char bytes[24];
  if (!f || f->op == OPS_COPY) return what;
  snprintf(room, 160, "%s%s%s%s%s, %d devices, %s%s%.60s: %s", op_name(f->op), f->sum ? " " : "",
           f->sum ? op_name(f->sum) : "", *f->way ? ", " : "", f->way, __builtin_popcountll(f->devices),
           bytes_text(f->nbytes, bytes), f->of ? " of " : "", f->of ? f->of : "", what);
  return room;
}

void exchanges_text(const TgContext *ctx, const Inside *in, Str *out) {
  const Exchanges *x = ctx->exchanges;
  ExchangeFacts row;
  int n = 0;
  for (size_t i = 0; x && i < x->at.len; i++) {
    if (!row_of(x, i, &row)) continue;
    if (!n) str_put(out, "\nexchanges between devices, estimated by TG_LINKS\n");
    if (n++ < ROWS_SHOWN) row_put(ctx, out, in, &row);
  }
  if (n > ROWS_SHOWN) str_printf(out, "  and %d kinds more\n", n - ROWS_SHOWN);
  if (x && x->more) str_printf(out, "  and %lld that were not kept\n", (long long)x->more);
}

void exchanges_json(const TgContext *ctx, const Inside *in, Str *out) {
  const Exchanges *x = ctx->exchanges;
  ExchangeFacts row;
  int n = 0;
  str_put(out, "],\"exchanges\":[");
  for (size_t i = 0; x && i < x->at.len; i++) {
    if (!row_of(x, i, &row)) continue;
    str_printf(out, "%s{\"op\":\"%s\",\"sum\":\"%s\",\"way\":\"%s\",\"devices\":[", n++ ? ",\n" : "",
               op_name(row.op), row.sum ? op_name(row.sum) : "", row.way);
    devices_put(ctx, out, row.devices, "\"");
    str_printf(out,
               "],\"bytes\":%lld,\"exchanges\":%lld,\"copies\":%lld,\"copied\":%lld,\"estimated_us\":%.3f,"
               "\"made\":%.2f,\"us\":%.3f,\"beside_us\":%.3f,\"hidden_us\":%.3f,\"behind\":",
               (long long)row.nbytes, (long long)row.alike, (long long)(row.planned / row.alike),
               (long long)(row.planned_bytes / row.alike), estimated_us(ctx, &row),
               times_of(&row, row.copies), row.us, row.flown_us, row.hidden_us);
    str_json(out, behind_name(in, &row.behind)), str_put(out, ",\"gradients\":[");
    names_put(x, out, &row, true), str_put(out, "]}");
  }
}
