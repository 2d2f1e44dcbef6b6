/* move.c: rows of random networks that rename, cut, join and look up elements. */
#include "networks.h"
#include <stdio.h>
#include <string.h>

enum { TEXT = 600 };

/* ---- one tensor, renamed */
static void permuted(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_pick(p);
  if (!x) return;
  int n = tg_ndim(x->t);
  int64_t order[NET_RANK];
  for (int i = 0; i < n; i++)
    order[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int k = net_below(p, i + 1);
    int64_t o = order[i];
    order[i] = order[k], order[k] = o;
  }
  net_out(p, tg_permute(x->t, n, order), x->most, "%s.permute(%s)", x->name, net_sizes(n, order));
}

static void reshaped(Net *p, const NetRow *row) { /* two axes merged, or one split */
  (void)row;
  NetNode *x = net_filled(p, 1);
  if (!x) return;
  int n = tg_ndim(x->t), a = net_below(p, n), k = 0;
  int64_t d[NET_RANK + 2], size = tg_dim(x->t, a), by = 1;
  if (a + 1 < n && net_chance(p, 2)) {
    for (int i = 0; i < n; i++)
      d[k++] = i == a ? size * tg_dim(x->t, ++i) : tg_dim(x->t, i);
    if (net_chance(p, 2)) {
      p->row = "flatten";
      net_out(p, tg_flatten(x->t, a, a + 1), x->most, "%s.flatten(%d, %d)", x->name, a, a + 1);
      return;
    }
  } else {
    for (int64_t i = 2; i <= size; i++)
      if (size % i == 0 && net_chance(p, 2)) by = i;
    for (int i = 0; i < n; i++) {
      if (i == a) d[k++] = size / by;
      d[k++] = i == a ? by : tg_dim(x->t, i);
    }
    if (net_chance(p, 2)) {
      int64_t parts[] = {-1, by};
      p->row = "unflatten";
      net_out(p, tg_unflatten(x->t, a, 2, parts), x->most, "%s.unflatten(%d, %s)", x->name, a,
              net_sizes(2, parts));
      return;
    }
  }
  net_out(p, tg_reshape(x->t, k, d), x->most, "%s.reshape(%s)", x->name, net_sizes(k, d));
}

static void squeezed(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_pick(p);
  if (!x) return;
  int n = tg_ndim(x->t), a = net_between(p, -n - 1, n), b = n ? net_below(p, n) : 0,
      c = n ? net_below(p, n) : 0;
  switch (net_below(p, 5)) {
  case 0: net_out(p, tg_squeeze_all(x->t), x->most, "%s.squeeze()", x->name); break;
  case 1:
    if (n) net_out(p, tg_squeeze(x->t, b), x->most, "%s.squeeze(%d)", x->name, b);
    break;
  case 2:
    if (n) net_out(p, tg_transpose(x->t, b, c - n), x->most, "%s.transpose(%d, %d)", x->name, b, c - n);
    break;
  default: net_out(p, tg_unsqueeze(x->t, a), x->most, "%s.unsqueeze(%d)", x->name, a);
  }
}

static void expanded(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_pick(p);
  if (!x || tg_numel(x->t) > 300) return;
  int n = tg_ndim(x->t), more = n < 5 ? net_below(p, 2) : 0;
  int64_t d[NET_RANK + 1], times[NET_RANK + 1];
  d[0] = times[0] = net_between(p, 1, 3);
  for (int i = 0; i < n; i++) {
    int64_t s = tg_dim(x->t, i);
    d[i + more] = s == 1 && net_chance(p, 2) ? net_between(p, 2, 4) : s;
    times[i + more] = net_chance(p, 3) ? net_between(p, 2, 3) : 1;
  }
  n += more;
  int axis = n - more ? net_below(p, n - more) : -1, by = net_between(p, 1, 3);
  switch (net_below(p, 3)) {
  case 0:
    p->row = "repeat";
    net_out(p, tg_repeat(x->t, n, times), x->most, "%s.repeat(%s)", x->name, net_sizes(n, times));
    break;
  case 1:
    p->row = "repeat_interleave";
    if (axis >= 0)
      net_out(p, tg_repeat_interleave(x->t, by, axis), x->most, "%s.repeat_interleave(%d, %d)", x->name, by,
              axis);
    break;
  default: net_out(p, tg_expand(x->t, n, d), x->most, "%s.expand(%s)", x->name, net_sizes(n, d));
  }
}

static void turned(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_pick(p);
  if (!x || !tg_ndim(x->t)) return;
  int n = tg_ndim(x->t), k = 0, a = net_below(p, n), b = net_below(p, n);
  int64_t axes[NET_RANK], shifts[] = {net_between(p, -9, 9), net_between(p, -9, 9)}, both[] = {a, b};
  for (int i = 0; i < n; i++)
    if (net_chance(p, 2)) axes[k++] = i;
  if (net_chance(p, 2))
    net_out(p, tg_flip(x->t, k, axes), x->most, "%s.flip(%s)", x->name, net_sizes(k, axes));
  else {
    int many = a == b ? 1 : 2;
    p->row = "roll";
    net_out(p, tg_roll(x->t, many, shifts, both), x->most, "%s.roll(%s, %s)", x->name,
            net_sizes(many, shifts), net_sizes(many, both));
  }
}

/* ---- padded and cut */
/* lo and hi as F.pad wants them: of the last axis first */
static const char *pads(int n, const int64_t *lo, const int64_t *hi) {
  int64_t d[2 * NET_RANK];
  for (int i = 0; i < n; i++)
    d[2 * i] = lo[n - 1 - i], d[2 * i + 1] = hi[n - 1 - i];
  return net_sizes(2 * n, d);
}

static void padded(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1);
  if (!x) return;
  int n = tg_ndim(x->t);
  int64_t lo[NET_RANK] = {0}, hi[NET_RANK] = {0}, to[NET_RANK];
  for (int i = 0; i < n; i++) {
    int64_t size = tg_dim(x->t, i);
    if (net_chance(p, 2)) lo[i] = net_between(p, net_chance(p, 3) ? -1 : 0, 2);
    if (net_chance(p, 2)) hi[i] = net_between(p, net_chance(p, 3) ? -1 : 0, 2);
    if (size + lo[i] + hi[i] < 1) lo[i] = hi[i] = 0;
    to[i] = size + net_below(p, 3);
  }
  if (net_chance(p, 4)) {
    int64_t zeros[NET_RANK] = {0}, ends[NET_RANK];
    for (int i = 0; i < n; i++)
      ends[i] = to[i] - tg_dim(x->t, i);
    p->row = "pad_to";
    net_out(p, tg_pad_to(x->t, n, to, 0.25), x->most, "F.pad(%s, %s, value=0.25)", x->name,
            pads(n, zeros, ends));
  } else if (net_chance(p, 2)) {
    double v = net_chance(p, 2) ? 0.5 : 0;
    net_out(p, v > 0 ? tg_pad_value(x->t, lo, hi, v) : tg_pad(x->t, lo, hi), x->most,
            "F.pad(%s, %s, value=%g)", x->name, pads(n, lo, hi), v);
  } else
    net_out(p, tg_shrink_to(x->t, n, tg_shape(x->t)), x->most, "%s * 1", x->name);
}

static void padded_by_mode(Net *p, const NetRow *row) {
  (void)row;
  static const char *const names[] = {"constant", "reflect", "replicate", "circular"};
  int axes = net_between(p, 1, 3), mode = net_between(p, 1, 3), n = axes + 2;
  NetNode *x = net_as_rank(p, net_filled(p, 0), n);
  if (!x) return;
  int64_t lo[NET_RANK] = {0}, hi[NET_RANK] = {0};
  for (int i = 2; i < n; i++) {
    int most = (int)tg_dim(x->t, i) - (mode == 1);
    lo[i] = net_below(p, most < 3 ? most + 1 : 4), hi[i] = net_below(p, most < 3 ? most + 1 : 4);
  }
  net_out(p, tg_pad_mode(x->t, lo, hi, (TgPadMode)mode), x->most, "F.pad(%s, %s, mode='%s')", x->name,
          pads(axes, lo + 2, hi + 2), names[mode]);
}

static void cut(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1);
  if (!x) return;
  int n = tg_ndim(x->t), a = net_below(p, n), size = (int)tg_dim(x->t, a);
  int from = net_below(p, size), to = from + 1 + net_below(p, size - from),
      at = net_between(p, -size, size - 1);
  int64_t lo[NET_RANK] = {0}, hi[NET_RANK];
  char text[TEXT] = "";
  for (int i = 0; i < n; i++) {
    int64_t s = tg_dim(x->t, i);
    lo[i] = net_chance(p, 2) ? 0 : net_below(p, (int)s), hi[i] = lo[i] + 1 + net_below(p, (int)(s - lo[i]));
    snprintf(text + strlen(text), TEXT - strlen(text), "%lld:%lld,", (long long)lo[i], (long long)hi[i]);
  }
  switch (net_below(p, 4)) {
  case 0:
    net_out(p, tg_slice(x->t, a, from, to), x->most, "%s.narrow(%d, %d, %d)", x->name, a, from, to - from);
    break;
  case 1: net_out(p, tg_select(x->t, a, at), x->most, "%s.select(%d, %d)", x->name, a, at); break;
  case 2: net_out(p, tg_shrink_to(x->t, n, hi), x->most, "head(%s, %s)", x->name, net_sizes(n, hi)); break;
  default: net_out(p, tg_shrink(x->t, lo, hi), x->most, "%s[%s]", x->name, text);
  }
}

static void items(Net *p, const NetRow *row) { /* x[..] of every kind of index */
  (void)row;
  NetNode *x = net_filled(p, 1), *rows[2] = {NULL, NULL};
  if (!x) return;
  int n = tg_ndim(x->t), k = 0, nrows = 0;
  TgIndex index[2 * NET_RANK];
  char text[TEXT] = "";
  int64_t many = net_between(p, 1, 4);
  for (int i = 0; i < n; i++) {
    int size = (int)tg_dim(x->t, i), from = net_below(p, size), to = from + 1 + net_below(p, size - from);
    size_t at = strlen(text);
    switch (net_below(p, 8)) {
    case 0:
      index[k++] = (TgIndex)TG_AT(from);
      snprintf(text + at, TEXT - at, "%d,", from);
      break;
    case 1:
      index[k++] = (TgIndex)TG_SLICE(from, to);
      snprintf(text + at, TEXT - at, "%d:%d,", from, to);
      break;
    case 2:
      index[k++] = (TgIndex)TG_SLICE(from - size, TG_OPEN, 2);
      snprintf(text + at, TEXT - at, "%d::2,", from - size);
      break;
    case 3:
      index[k++] = (TgIndex)TG_NEW, index[k++] = (TgIndex)TG_ALL;
      snprintf(text + at, TEXT - at, "None,:,");
      break;
    case 4:
    case 5:
      if (nrows < 2) {
        NetNode *r = net_places(p, 1, &many, -size, size);
        if (!r) return;
        rows[nrows++] = r;
        index[k++] = (TgIndex)TG_TENSOR(r->t);
        snprintf(text + at, TEXT - at, "%s.long(),", r->name);
        break;
      } /* fall through */
    default: index[k++] = (TgIndex)TG_ALL; snprintf(text + at, TEXT - at, ":,");
    }
  }
  (void)rows;
  net_out(p, tg_getitem(x->t, index, k), x->most, "%s[%s]", x->name, text);
}

static void backwards(Net *p, const NetRow *row) { /* PyTorch has no slice of negative step */
  (void)row;
  NetNode *x = net_filled(p, 1);
  if (!x) return;
  int step = net_between(p, 1, 3);
  net_out(p, tg_getitem(x->t, TG_IDX(TG_SLICE(TG_OPEN, TG_OPEN, -step))), x->most, "%s.flip(0)[::%d]",
          x->name, step);
}

/* ---- joined and parted */
static void joined(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_pick(p);
  if (!x) return;
  int n = tg_ndim(x->t), a = n ? net_below(p, n) : 0;
  int64_t d[NET_RANK];
  for (int i = 0; i < n; i++)
    d[i] = tg_dim(x->t, i);
  bool stack = net_chance(p, 2) || !n;
  if (!stack) d[a] = net_between(p, 0, 3);
  NetNode *y = net_fresh(p, n, d);
  if (!y) return;
  y->read = true;
  TgTensor *all[] = {x->t, y->t, x->t};
  int many = net_between(p, 1, 3);
  char text[64];
  snprintf(text, sizeof text,
           many == 1   ? "[%s]"
           : many == 2 ? "[%s, %s]"
                       : "[%s, %s, %s]",
           x->name, y->name, x->name);
  if (stack)
    net_out(p, tg_stack(all, many, a), 1.6 + x->most, "torch.stack(%s, %d)", text, a);
  else
    net_out(p, tg_cat(all, many, a - n), 1.6 + x->most, "torch.cat(%s, %d)", text, a - n);
}

static void parted(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1);
  if (!x) return;
  int a = net_below(p, tg_ndim(x->t)), size = (int)tg_dim(x->t, a),
      by = net_between(p, 1, size < 4 ? size : 4), n;
  TgTensor *parts[64];
  if (size > 40) return;
  double most = x->most;
  char name[12];
  snprintf(name, sizeof name, "%s", x->name);
  const char *way = net_chance(p, 2) ? "split" : "chunk";
  p->row = way;
  n = *way == 's' ? tg_split(x->t, a, by, parts, 64) : tg_chunk(x->t, a, by, parts, 64);
  if (n < 1) {
    net_out(p, NULL, 0, " ");
    return;
  }
  for (int k = 0; k < 2; k++) {
    int i = net_below(p, n);
    net_out(p, parts[i], most, "torch.%s(%s, %d, %d)[%d]", way, name, by, a, i);
  }
}

static void diagonals(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 0);
  if (!x) return;
  int n = tg_ndim(x->t), off = net_between(p, -2, 3);
  if (n == 1)
    net_out(p, tg_diag(x->t), x->most, "torch.diag(%s)", x->name);
  else if (n > 1) {
    int a = net_below(p, n), b = (a + 1 + net_below(p, n - 1)) % n;
    switch (net_below(p, 3)) {
    case 0:
      p->row = "tril", net_out(p, tg_tril(x->t, off), x->most, "torch.tril(%s, %d)", x->name, off);
      break;
    case 1:
      p->row = "triu", net_out(p, tg_triu(x->t, off), x->most, "torch.triu(%s, %d)", x->name, off);
      break;
    default:
      if (off >= tg_dim(x->t, b) || -off >= tg_dim(x->t, a)) off = 0;
      net_out(p, tg_diagonal(x->t, off, a, b), x->most, "torch.diagonal(%s, %d, %d, %d)", x->name, off, a, b);
    }
  }
}

static void windows(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1);
  if (!x) return;
  int a = net_below(p, tg_ndim(x->t)), size = net_between(p, 1, (int)tg_dim(x->t, a)),
      step = net_between(p, 1, 3);
  net_out(p, tg_unfold(x->t, a, size, step), x->most, "%s.unfold(%d, %d, %d)", x->name, a, size, step);
}

static void grid(Net *p, const NetRow *row) {
  (void)row;
  int64_t n = net_between(p, 1, 4), m = net_between(p, 1, 4);
  NetNode *a = net_fresh(p, 1, &n), *b = a ? net_fresh(p, 1, &m) : NULL;
  if (!b) return;
  bool xy = net_chance(p, 2);
  TgTensor *in[] = {a->t, b->t}, *out[2];
  if (tg_meshgrid(in, 2, xy, out)) out[0] = NULL;
  a->read = b->read = true;
  int k = net_below(p, 2);
  net_out(p, out[0] ? out[k] : NULL, 1.6, "torch.meshgrid(%s, %s, indexing='%s')[%d]", a->name, b->name,
          xy ? "xy" : "ij", k);
}

static void rearranged(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1);
  if (!x) return;
  int n = tg_ndim(x->t);
  int64_t d = tg_dim(x->t, 0), h = d % 2 ? 1 : 2;
  if (n == 1)
    net_out(p, tg_rearrange(x->t, "(h w) -> w h", TG_NAMED({"h", h})), x->most,
            "%s.unflatten(0, (%lld, -1)).transpose(0, 1)", x->name, (long long)h);
  else if (n == 2)
    net_out(p, tg_rearrange(x->t, "a b -> b 1 a", NULL, 0), x->most, "%s.transpose(0, 1).unsqueeze(1)",
            x->name);
  else if (n == 3)
    net_out(p, tg_rearrange(x->t, "a b c -> (c a) b", NULL, 0), x->most, "%s.permute(2, 0, 1).flatten(0, 1)",
            x->name);
  else
    net_out(p, tg_rearrange(x->t, "... a b -> b ... a", NULL, 0), x->most, "%s.movedim(-1, 0)", x->name);
}

/* ---- looked up and stored by index */
static void gathered(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1), *i;
  if (!x) return;
  int n = tg_ndim(x->t), a = net_below(p, n);
  int64_t d[NET_RANK];
  for (int k = 0; k < n; k++)
    d[k] = net_between(p, 1, (int)tg_dim(x->t, k));
  d[a] = net_between(p, 1, 5);
  i = net_places(p, n, d, 0, tg_dim(x->t, a));
  if (i)
    net_out(p, tg_gather(x->t, a, i->t), x->most, "torch.gather(%s, %d, %s.long())", x->name, a, i->name);
}

static void taken(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1), *i;
  if (!x) return;
  int n = net_between(p, 0, 2);
  int64_t d[] = {net_between(p, 1, 4), net_between(p, 1, 3)};
  i = net_places(p, n, d, 0, tg_dim(x->t, 0));
  if (!i) return;
  net_out(p, net_chance(p, 2) ? tg_take(x->t, i->t) : tg_embedding(x->t, i->t), x->most, "%s[%s.long()]",
          x->name, i->name);
}

static void scattered(Net *p, const NetRow *row) {
  (void)row;
  static const char *const ways[] = {"sum", "prod", "mean", "amax", "amin"};
  NetNode *x = net_filled(p, 1), *i, *src;
  if (!x || tg_dim(x->t, 0) > 60) return;
  int n = tg_ndim(x->t), a = net_below(p, n), way = net_between(p, -1, 4);
  int64_t d[NET_RANK];
  for (int k = 0; k < n; k++)
    d[k] = net_between(p, 1, (int)tg_dim(x->t, k));
  bool without = net_chance(p, 2), once = way <= 0 && net_chance(p, 2);
  i = way < 0 ? net_order(p, n, d, a, tg_dim(x->t, a)) : net_places(p, n, d, 0, tg_dim(x->t, a));
  src = i ? net_fresh(p, n, d) : NULL;
  if (!src) return;
  src->read = true;
  TgTensor *v = tg_cast(src->t, tg_dtype(x->t));
  src = net_out(p, v, 1.6, "%s * 1", src->name);
  if (!src) return;
  src->read = true;
  if (way < 0)
    net_out(p, tg_scatter(x->t, a, i->t, src->t), x->most, "torch.scatter(%s, %d, %s.long(), %s)", x->name, a,
            i->name, src->name);
  else if (once)
    net_out(p, tg_scatter(x->t, a, i->t, src->t, .reduce = TG_SCATTER_ADD), x->most + 5,
            "torch.scatter_add(%s, %d, %s.long(), %s)", x->name, a, i->name, src->name);
  else {
    p->row = "scatter_reduce";
    net_out(p,
            tg_scatter_reduce(x->t, a, i->t, src->t, (TgScatterReduce)(TG_SCATTER_ADD + way),
                              .exclude_self = without),
            way == 1 ? 8 * x->most : x->most + 5, "scatter_reduce(%s, %d, %s.long(), %s, '%s', %s)", x->name,
            a, i->name, src->name, ways[way], without ? "False" : "True");
  }
}

static void put(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1), *i, *v;
  if (!x || tg_dim(x->t, 0) > 60) return;
  int n = tg_ndim(x->t);
  bool more = net_chance(p, 2);
  int64_t many = net_between(p, 1, (int)tg_dim(x->t, 0)), d[NET_RANK];
  for (int k = 0; k < n; k++)
    d[k] = k ? tg_dim(x->t, k) : many;
  i = more ? net_places(p, 1, &many, 0, tg_dim(x->t, 0)) : net_order(p, 1, &many, 0, tg_dim(x->t, 0));
  v = i ? net_fresh(p, n, d) : NULL;
  if (!v) return;
  v->read = true;
  v = net_out(p, tg_cast(v->t, tg_dtype(x->t)), 1.6, "%s * 1", v->name);
  if (!v) return;
  v->read = true;
  TgTensor *y = tg_index_put(x->t, TG_IDX(TG_TENSOR(i->t)), v->t, .accumulate = more);
  net_out(p, y, x->most + 4, "%s.index_put((%s.long(),), %s, %s)", x->name, i->name, v->name,
          more ? "True" : "False");
}

static void set(Net *p,
                const NetRow *row) { /* x[from:to] = v of an expression, which both get gradients of */
  (void)row;
  NetNode *x = net_filled(p, 1), *v;
  if (!x) return;
  int size = (int)tg_dim(x->t, 0), from = net_below(p, size), to = from + 1 + net_below(p, size - from), n;
  int64_t d[NET_RANK];
  n = tg_ndim(x->t);
  for (int k = 0; k < n; k++)
    d[k] = k ? tg_dim(x->t, k) : to - from;
  v = net_fresh(p, n, d);
  if (!v) return;
  v->read = true;
  v = net_out(p, tg_cast(v->t, tg_dtype(x->t)), 1.6, "%s * 1", v->name);
  if (!v) return;
  v->read = true;
  TgTensor *y = tg_setitem(tg_mul_scalar(x->t, 1.5), TG_IDX(TG_SLICE(from, to)), v->t);
  net_out(p, y, 1.5 * x->most + 2, "put(%s * 1.5, slice(%d, %d), %s)", x->name, from, to, v->name);
}

static void selected(Net *p, const NetRow *row) {
  (void)row;
  NetNode *x = net_filled(p, 1), *m;
  if (!x) return;
  m = net_mask(p, tg_ndim(x->t), tg_shape(x->t));
  p->record->reads = true;
  if (!m) return;
  if (net_chance(p, 2))
    net_out(p, tg_masked_select(x->t, m->t), x->most, "torch.masked_select(%s, %s)", x->name, m->name);
  else
    net_out(p, tg_getitem(x->t, TG_IDX(TG_MASK(m->t))), x->most, "%s[%s]", x->name, m->name);
}

static void hot(Net *p, const NetRow *row) {
  (void)row;
  int64_t d[] = {net_between(p, 1, 4), net_between(p, 1, 3)}, classes = net_between(p, 1, 5);
  NetNode *i = net_places(p, net_between(p, 0, 2), d, 0, classes);
  if (i) net_out(p, tg_one_hot(i->t, classes), 1, "F.one_hot(%s.long(), %lld)", i->name, (long long)classes);
}

const NetRow net_move[] = {{.name = "permute", .make = permuted},
                           {.name = "reshape", .make = reshaped},
                           {.name = "reshape", .make = reshaped},
                           {.name = "squeeze", .make = squeezed},
                           {.name = "expand", .make = expanded},
                           {.name = "flip", .make = turned},
                           {.name = "pad", .make = padded},
                           {.name = "pad_mode", .make = padded_by_mode},
                           {.name = "shrink", .make = cut},
                           {.name = "getitem", .make = items},
                           {.name = "getitem", .make = items},
                           {.name = "negative step", .make = backwards},
                           {.name = "cat", .make = joined},
                           {.name = "split", .make = parted},
                           {.name = "diagonal", .make = diagonals},
                           {.name = "unfold", .make = windows},
                           {.name = "meshgrid", .make = grid},
                           {.name = "rearrange", .make = rearranged},
                           {0}};

const NetRow net_index[] = {{.name = "gather", .make = gathered},
                            {.name = "take", .make = taken},
                            {.name = "scatter", .make = scattered},
                            {.name = "scatter", .make = scattered},
                            {.name = "index_put", .make = put},
                            {.name = "setitem", .make = set},
                            {.name = "masked_select", .make = selected},
                            {.name = "one_hot", .make = hot},
                            {0}};
