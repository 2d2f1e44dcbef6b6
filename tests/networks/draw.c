/* draw.c: what the rows of random networks draw from: numbers, leaves, values that are there, domains. */
#include "networks.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void net_say(NetText *text, const char *format, ...) {
  va_list ap;
  va_start(ap, format);
  int n = vsnprintf(NULL, 0, format, ap);
  va_end(ap);
  if (text->n + (size_t)n + 1 > text->room) {
    text->room = 2 * (text->n + (size_t)n + 1);
    text->text = realloc(text->text, text->room);
    if (!text->text) abort();
  }
  va_start(ap, format);
  vsnprintf(text->text + text->n, (size_t)n + 1, format, ap);
  va_end(ap);
  text->n += (size_t)n;
}

static uint32_t draw(uint64_t *rng) { /* splitmix64 */
  uint64_t z = *rng += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u, z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return (uint32_t)((z ^ z >> 31) >> 32);
}

int net_below(Net *p, int n) { return n > 0 ? (int)(draw(&p->rng) % (uint32_t)n) : 0; }

int net_between(Net *p, int lo, int hi) { return lo + net_below(p, hi - lo + 1); }

bool net_chance(Net *p, int of) { return net_below(p, of) == 0; }

double net_fraction(Net *p) { return draw(&p->rng) / 4294967296.; }

const char *net_sizes(int n, const int64_t *d) {
  static char ring[16][160];
  static int turn;
  char *s = ring[turn++ % 16];
  int at = snprintf(s, 160, "(");
  for (int i = 0; i < n; i++)
    at += snprintf(s + at, (size_t)(160 - at), "%lld,", (long long)d[i]);
  snprintf(s + at, (size_t)(160 - at), ")");
  return s;
}

const char *net_axes(TgAxes a) {
  int64_t d[TG_MAX_RANK];
  for (int i = 0; i < a.n; i++)
    d[i] = a.v[i];
  return net_sizes(a.n, d);
}

TgDType net_dtype(Net *p, TgDType dtype) { return p->exact && tg_dtype_is_float(dtype) ? TG_F64 : dtype; }

bool net_is_float(const NetNode *x) { return tg_dtype_is_float(x->dtype); }

/* ---- nodes */
void net_rounding(TgDType dtype, double *relative, double *absolute) {
  *absolute = 0;
  switch (dtype) {
  case TG_F64: *relative = 0x1p-53; break;
  case TG_F32: *relative = 0x1p-24; break;
  case TG_BF16: *relative = 0x1p-9; break;
  case TG_F16: *relative = 0x1p-12, *absolute = 0x1p-25; break;
  case TG_FP8E4M3: *relative = 0x1p-4, *absolute = 0x1p-10; break;
  default: *relative = 0x1p-3, *absolute = 0x1p-17; break;
  }
}

/* t moved by what rounding might do, up or down at random; its gradient moves along. */
static TgTensor *noisy(Net *p, TgTensor *t, TgDType dtype) {
  int64_t n = tg_numel(t);
  double relative, absolute, *times = malloc(((size_t)n + 1) * 2 * sizeof *times), *more = times + n + 1;
  if (!times) abort();
  net_rounding(dtype, &relative, &absolute);
  uint64_t rng = p->noise * 0x632be59bd9b4e019u + (uint64_t)p->n;
  for (int64_t i = 0; i < n; i++) {
    double way = draw(&rng) / 2147483648. - 1;
    times[i] = 1 + 2 * relative * way * p->loudness;
    more[i] = 2 * absolute * way * p->loudness;
  }
  TgTensor *m = tg_from_f64(p->ctx, times, TG_F64, tg_ndim(t), tg_shape(t));
  TgTensor *y = tg_mul(t, m);
  if (absolute > 0) y = tg_add(y, tg_from_f64(p->ctx, more, TG_F64, tg_ndim(t), tg_shape(t)));
  free(times);
  return y;
}

static NetNode *add(Net *p, TgTensor *t, double most) {
  NetRecord *r = p->record;
  NetNode *x = &p->node[p->n];
  if (!r->noted) r->dtype[p->n] = tg_dtype(t);
  *x = (NetNode){.t = t, .dtype = r->dtype[p->n], .most = most};
  snprintf(x->name, sizeof x->name, "n%d", p->n);
  if (p->noise && net_is_float(x)) x->t = noisy(p, t, x->dtype);
  p->n++;
  return x;
}

static bool refused(Net *p, const char *why) {
  if (!p->fault[0]) snprintf(p->fault, sizeof p->fault, "%s: %s", p->row, why);
  return false;
}

NetNode *net_out(Net *p, TgTensor *t, double most, const char *format, ...) {
  if (!t) return refused(p, tg_errmsg(p->ctx)), NULL;
  if (p->n == NET_NODES || tg_numel(t) > NET_NUMEL || tg_ndim(t) > NET_RANK) return NULL;
  NetNode *x = add(p, t, most);
  if (!p->record->noted) {
    char line[1200];
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    net_say(&p->record->python, " %s = N(%s, '%s')\n", x->name, line, tg_dtype_name(x->dtype));
  }
  return x;
}

/* ---- leaves. Their values are drawn once, rounded to their dtype, and the same everywhere. */
static NetNode *leaf(Net *p, TgDType dtype, int n, const int64_t *d, const double *v, double most) {
  NetRecord *r = p->record;
  size_t count = 1;
  for (int i = 0; i < n; i++)
    count *= (size_t)d[i];
  if (p->n == NET_NODES || count > NET_NUMEL) return NULL;
  if (tg_dtype_is_float(dtype) && p->nleaves == NET_LEAVES) return NULL;
  if (!r->noted) {
    if (r->ndata + count > r->room) {
      r->room = 2 * (r->ndata + count) + 256;
      r->data = realloc(r->data, r->room * sizeof *r->data);
      if (!r->data) abort();
    }
    TgTensor *t = tg_from_f64(p->ctx, v, dtype, n, d);
    if (!t || tg_read_f64(t, r->data + r->ndata, count)) return refused(p, tg_errmsg(p->ctx)), NULL;
    r->at[p->n] = r->ndata, r->ndata += count;
    r->dtype[p->n] = dtype;
  }
  TgDType own = r->dtype[p->n];
  TgTensor *t =
      p->given ? p->given[p->ngiven] : tg_from_f64(p->ctx, r->data + r->at[p->n], net_dtype(p, own), n, d);
  if (p->ngiven == NET_NODES) return NULL;
  if (!p->given) p->made[p->ngiven] = t;
  p->ngiven++;
  if (!t) return refused(p, tg_errmsg(p->ctx)), NULL;
  bool real = tg_dtype_is_float(own);
  if (!r->noted) {
    net_say(&r->python, " l%d = I(%zu, %s, '%s')\n", p->n, r->at[p->n], net_sizes(n, d), tg_dtype_name(own));
    net_say(&r->python, " n%d = N(l%d, '%s')\n", p->n, p->n, tg_dtype_name(own));
  }
  if (real) p->leaf_node[p->nleaves] = p->n, p->leaf[p->nleaves++] = t;
  NetNode *x = &p->node[p->n];
  *x = (NetNode){.t = real && p->noise ? noisy(p, t, own) : t, .dtype = own, .most = most};
  snprintf(x->name, sizeof x->name, "n%d", p->n);
  p->n++;
  return x;
}

static const int themes[16] = {NET_F32, NET_F32, NET_F32, NET_F32,  NET_F32,  NET_F32, NET_F64,   NET_F64,
                               NET_F64, NET_F16, NET_F16, NET_BF16, NET_BF16, NET_FP8, NET_MIXED, NET_MIXED};

int net_theme(uint64_t number) { return themes[number * 7919 % 16]; }

bool net_wants_f64(uint64_t number) {
  int theme = net_theme(number);
  return theme == NET_F64 || theme == NET_MIXED;
}

static TgDType drawn_dtype(Net *p) {
  static const TgDType mixed[] = {TG_F32, TG_F64, TG_F16, TG_BF16, TG_F32};
  int kind = net_below(p, 5);
  switch (p->theme) {
  case NET_F32: return TG_F32;
  case NET_F64: return TG_F64;
  case NET_F16: return TG_F16;
  case NET_BF16: return TG_BF16;
  case NET_FP8: return kind < 2 ? TG_FP8E4M3 : kind < 3 ? TG_FP8E5M2 : kind < 4 ? TG_F32 : TG_BF16;
  default: return mixed[kind];
  }
}

NetNode *net_fresh(Net *p, int n, const int64_t *d) {
  double v[NET_NUMEL];
  int64_t count = 1;
  for (int i = 0; i < n; i++)
    count *= d[i];
  if (count > NET_NUMEL) return NULL;
  TgDType dtype = drawn_dtype(p);
  for (int64_t i = 0; i < count; i++)
    v[i] = 3.2 * net_fraction(p) - 1.6;
  NetNode *x = leaf(p, dtype, n, d, v, 1.6);
  if (x && tg_dtype_size(dtype) == 1 && net_below(p, 4)) { /* fp8 is kept, and computed with wider */
    TgDType wider = net_chance(p, 2) ? TG_BF16 : TG_F32;
    x->read = true;
    x = net_out(p, tg_cast(x->t, net_dtype(p, wider)), 1.6, "%s", x->name);
  }
  return x;
}

NetNode *net_places(Net *p, int n, const int64_t *d, int64_t lo, int64_t hi) {
  double v[NET_NUMEL];
  int64_t count = 1;
  for (int i = 0; i < n; i++)
    count *= d[i];
  if (count > NET_NUMEL || (hi <= lo && count)) return NULL;
  for (int64_t i = 0; i < count; i++)
    v[i] = (double)net_between(p, (int)lo, (int)hi - 1);
  return leaf(p, net_chance(p, 2) ? TG_I32 : TG_I64, n, d, v, (double)hi);
}

NetNode *net_order(Net *p, int n, const int64_t *d, int axis, int64_t size) {
  double v[NET_NUMEL];
  int64_t count = 1, inner = 1, order[64];
  for (int i = 0; i < n; i++)
    count *= d[i], inner *= i > axis ? d[i] : 1;
  if (count > NET_NUMEL || size > 64 || d[axis] > size || !count) return NULL;
  for (int64_t at = 0; at < count; at += d[axis] * inner)
    for (int64_t k = 0; k < inner; k++) {
      for (int64_t i = 0; i < size; i++)
        order[i] = i;
      for (int64_t i = 0; i < d[axis]; i++) {
        int64_t from = i + net_below(p, (int)(size - i)), taken = order[from];
        order[from] = order[i];
        v[at + i * inner + k] = (double)taken;
      }
    }
  return leaf(p, net_chance(p, 2) ? TG_I32 : TG_I64, n, d, v, (double)size);
}

NetNode *net_mask(Net *p, int n, const int64_t *d) {
  double v[NET_NUMEL];
  int64_t count = 1;
  for (int i = 0; i < n; i++)
    count *= d[i];
  if (count > NET_NUMEL) return NULL;
  for (int64_t i = 0; i < count; i++)
    v[i] = net_below(p, 3) > 0;
  return leaf(p, TG_BOOL, n, d, v, 1);
}

/* ---- values that are there */
enum { LARGE = 6 };

/* x with smaller numbers, where they have become large. */
static NetNode *calm(Net *p, NetNode *x, double most) {
  if (!x || x->most <= most) return x;
  double by = 0.5 * most / x->most;
  x->read = true;
  return net_out(p, tg_mul_scalar(x->t, by), most, "%s * %.17g", x->name, by);
}

NetNode *net_pick(Net *p) {
  int floats[NET_NODES], n = 0;
  for (int i = 0; i < p->n; i++)
    if (net_is_float(&p->node[i]) && p->node[i].most < NET_INFINITE) floats[n++] = i;
  if (!n) return NULL;
  int recent = n < 3 ? n : 3, k = net_below(p, 5) ? n - 1 - net_below(p, recent) : net_below(p, n);
  NetNode *x = calm(p, &p->node[floats[k]], LARGE);
  if (x) x->read = true;
  return x;
}

NetNode *net_in(Net *p, NetNode *x, int domain) {
  if (!x) return NULL;
  switch (domain) {
  case NET_POSITIVE:
    x = calm(p, x, 3);
    return x ? net_out(p, tg_add_scalar(tg_mul_scalar(tg_square(x->t), 0.5), 0.3), 5, "%s * %s * 0.5 + 0.3",
                       x->name, x->name)
             : NULL;
  case NET_UNIT: return net_out(p, tg_mul_scalar(tg_sin(x->t), 0.9), 1, "torch.sin(%s) * 0.9", x->name);
  case NET_ABOVE_ONE:
    x = calm(p, x, 3);
    return x ? net_out(p, tg_add_scalar(tg_square(x->t), 1.3), 10, "%s * %s + 1.3", x->name, x->name) : NULL;
  case NET_SMALL: return calm(p, x, 2.5);
  default: return x;
  }
}

NetNode *net_pick_in(Net *p, int domain) {
  NetNode *x = net_in(p, net_pick(p), domain);
  if (x) x->read = true;
  return x;
}

NetNode *net_filled(Net *p, int rank) {
  for (int i = 0; i < 6; i++) {
    NetNode *x = net_pick(p);
    if (x && tg_numel(x->t) && tg_ndim(x->t) >= rank) return x;
  }
  return NULL;
}

NetNode *net_as_rank(Net *p, NetNode *x, int rank) {
  if (!x) return NULL;
  int n = tg_ndim(x->t);
  if (n == rank) return x;
  int64_t d[NET_RANK] = {0};
  const int64_t *s = tg_shape(x->t);
  if (n < rank)
    for (int i = 0; i < rank; i++)
      d[i] = i < rank - n ? 1 : s[i - (rank - n)];
  else {
    d[0] = 1;
    for (int i = 0; i < n; i++)
      if (i <= n - rank)
        d[0] *= s[i];
      else
        d[i - (n - rank)] = s[i];
  }
  x->read = true;
  x = net_out(p, tg_reshape(x->t, rank, d), x->most, "%s.reshape(%s)", x->name, net_sizes(rank, d));
  if (x) x->read = true;
  return x;
}

bool net_broadcasts(const NetNode *a, const NetNode *b) {
  int n = tg_ndim(a->t), m = tg_ndim(b->t);
  for (int i = 1; i <= n && i <= m; i++) {
    int64_t s = tg_dim(a->t, -i), t = tg_dim(b->t, -i);
    if (s != t && s != 1 && t != 1) return false;
  }
  return true;
}

NetNode *net_beside(Net *p, NetNode *x) {
  for (int i = 0; x && i < 4; i++) {
    NetNode *y = net_pick(p);
    if (y && net_broadcasts(x, y)) return y;
  }
  int n = x ? tg_ndim(x->t) : 0;
  int64_t d[NET_RANK];
  for (int i = 0; i < n; i++)
    d[i] = net_chance(p, 3) ? 1 : tg_dim(x->t, i);
  int off = net_chance(p, 3) ? net_below(p, n + 1) : 0;
  NetNode *y = net_fresh(p, n - off, d + off);
  if (y) y->read = true;
  return y;
}

NetNode *net_wants(Net *p, bool integer) {
  for (int i = 0; i < 12 && p->n; i++) {
    NetNode *x = &p->node[net_below(p, p->n)];
    if (net_is_float(x) || (x->dtype == TG_BOOL) == integer) continue;
    x->read = true;
    return x;
  }
  return NULL;
}
