/* causes.c: what may make a program slow. In: the facts of its plans. Out: causes, each with the time that
 * it may cost and the kernel or call that it is about. Each cause is found by a measure (bytes moved
 * against bytes needed, time against work, graphs that differ only in their sizes), never by the name of
 * an operation. */
#include "engine/inside.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The time in us that a host needs to hand over a launch or to fetch a result. A launch that takes less is
 * a small launch. */
#define HANDOVER_US 5.0
#define LEAST_SHARE 0.02 /* share of all time above which a cause is worth a line */

enum { MANY = 16, LARGE = 256 << 10 };

/* Measured time of all runs of a kernel, or the estimated time of one run if it never ran. */
static double kernel_us(const KernelFacts *k) { return k->runs ? k->us : k->est_us; }

typedef struct Causes {
  const Inside *in;
  Cause *at;
  int n;
  double all, estimated; /* us of all kernels and copies: measured, and by the model */
} Causes;

__attribute__((format(printf, 4, 5))) static void cause_add(Causes *c, const char *kind, double us,
                                                            const char *form, ...) {
  Cause *to = &c->at[c->n < MOST_CAUSES ? c->n++ : MOST_CAUSES - 1];
  va_list list;
  *to = (Cause){.kind = kind, .us = us};
  va_start(list, form);
  vsnprintf(to->text, sizeof to->text, form, list);
  va_end(list);
}

/* A plan that could not be made has no programs, and nothing of it ran. */
static bool is_made(const PlanFacts *p) { return p->nkernel && p->kernel[p->nkernel - 1].name; }

static const char *origin_of(const KernelFacts *k) { return k->origin && *k->origin ? k->origin : k->name; }

static double mib(int64_t bytes) { return (double)bytes / (1 << 20); }

/* ---- causes in one kernel */
typedef double (*Measure)(const PlanFacts *p,
                          const KernelFacts *k); /* us that it may cost; 0: it is not a cause */

static double copy_only(const PlanFacts *p, const KernelFacts *k) {
  (void)p;
  bool moves = !k->computes && !k->crossed && k->read >= LARGE && k->written <= 2 * k->read;
  return moves ? kernel_us(k) : 0;
}

static double crossed(const PlanFacts *p, const KernelFacts *k) {
  (void)p;
  bool light = k->flops <= 16 * (k->read + k->written);
  return k->crossed && light ? kernel_us(k) / 2 : 0;
}

static double in_f64(const PlanFacts *p, const KernelFacts *k) {
  (void)p;
  return k->f64 ? kernel_us(k) / 2 : 0;
}

static double spread_out(const PlanFacts *p, const KernelFacts *k) {
  (void)p;
  bool wide = !k->reduces && k->written >= LARGE && k->written >= 8 * (k->read + 1);
  bool numbers = k->flops > 4 * k->written; /* the values are computed, as random numbers are */
  return wide && k->read && !numbers ? kernel_us(k) * (1 - (double)k->read / (double)k->written) : 0;
}

static double one_core(const PlanFacts *p, const KernelFacts *k) {
  bool large = k->est_us >= 40 * HANDOVER_US;
  return k->threads == 1 && p->cores > 1 && large ? kernel_us(k) * (1 - 1.0 / p->cores) : 0;
}

/* Finds a temporary that only this kernel reads and that both kernels could keep in registers because
 * neither reduces. */
static double stored_between(const PlanFacts *p, const KernelFacts *k) {
  for (int a = 0; a < k->narg; a++) {
    int64_t t = k->arg[a] - TEMP_BASE;
    if (t < 0 || t >= p->nbuffer || &p->kernel[p->buffer[t].first] == k) continue;
    const BufferFacts *b = &p->buffer[t];
    const KernelFacts *from = &p->kernel[b->first];
    if (b->slab >= 0 && b->readers == 1 && b->bytes >= LARGE && !from->reduces && !k->reduces)
      return TG_MIN(kernel_us(k), kernel_us(from));
  }
  return 0;
}

static const struct {
  const char *kind;
  Measure measure;
  const char *says;
} of_kernels[] = {
    {"copy", copy_only, "copies memory and computes nothing: is the copy needed?"},
    {"transposed", crossed,
     "reads along one axis and writes along another, a line of cache for each element"},
    {"f64", in_f64, "computes in f64, which takes twice the time of f32"},
    {"spread", spread_out, "stores a broadcast, many times what it reads: let its reader expand it"},
    {"one core", one_core, "runs on one core: it has no loop that can be shared out"},
    {"unfused", stored_between,
     "reads what another kernel just stored for it alone: one kernel could do both"}};

static void kernels_looked(Causes *c) {
  for (size_t m = 0; m < TG_COUNT(of_kernels); m++) {
    double us = 0, most = 0, estimated = 0;
    const KernelFacts *worst = NULL;
    int count = 0;
    for (size_t i = 0; i < c->in->plans.len; i++)
      for (int k = 0; is_made(c->in->plans.at[i]) && k < c->in->plans.at[i]->nkernel; k++) {
        const KernelFacts *f = &c->in->plans.at[i]->kernel[k];
        double lost = of_kernels[m].measure(c->in->plans.at[i], f);
        us += lost;
        if (lost > 0) estimated += lost / kernel_us(f) * f->est_us * (double)TG_MAX(f->runs, 1);
        count += lost > 0;
        if (lost <= most) continue;
        most = lost;
        worst = f;
      }
    /* A busy machine makes any kernel slow, so it is enough if one of the two shares of time is large. */
    if (!worst || (us < LEAST_SHARE * c->all && estimated < LEAST_SHARE * c->estimated)) continue;
    char others[40] = "";
    if (count > 1) snprintf(others, sizeof others, ", and %d more such", count - 1);
    cause_add(c, of_kernels[m].kind, us, "%s %s (reads %.1f MiB, writes %.1f MiB): %.200s%s", worst->name,
              of_kernels[m].says, mib(worst->read), mib(worst->written), origin_of(worst), others);
  }
}

/* ---- causes in many launches */
static void small_launches(Causes *c) {
  int64_t small = 0, all = 0;
  double us = 0;
  const KernelFacts *most = NULL;
  for (size_t i = 0; i < c->in->plans.len; i++)
    for (int k = 0; is_made(c->in->plans.at[i]) && k < c->in->plans.at[i]->nkernel; k++) {
      const KernelFacts *f = &c->in->plans.at[i]->kernel[k];
      int64_t runs = TG_MAX(f->runs, 1);
      all += runs;
      if (f->est_us >= HANDOVER_US) continue;
      small += runs;
      us += (double)runs * HANDOVER_US;
      if (!most || runs > TG_MAX(most->runs, 1)) most = f;
    }
  if (small >= MANY && 2 * small >= all)
    cause_add(c, "small", us,
              "%lld of %lld launches have less work (%s: %.2f us) than a launch costs: %.200s",
              (long long)small, (long long)all, most->name, most->est_us, origin_of(most));
}

/* Graphs that compute the same thing: with other sizes if `sizes` is set, otherwise with another number in
 * them. */
static void made_again(Causes *c, bool sizes) {
  const Inside *in = c->in;
  int most = 0;
  double us = 0;
  const PlanFacts *of = NULL;
  for (size_t i = 0; i < in->plans.len; i++) {
    const PlanFacts *p = in->plans.at[i];
    int same = 0;
    double made = 0;
    for (size_t k = 0; is_made(p) && k < in->plans.len; k++) {
      const PlanFacts *q = in->plans.at[k];
      if (q->nkernel != p->nkernel || q->ops != p->ops || (k != i && (q->sizes != p->sizes) != sizes))
        continue;
      same++;
      made += q->made_us;
    }
    if (same <= most) continue;
    most = same;
    us = made;
    of = p;
  }
  if (most >= 4 && of->nkernel)
    cause_add(c, sizes ? "sizes" : "numbers", us * (most - 1) / most,
              "%d graphs differ in %s alone, and each was scheduled and compiled (%.0f ms): %s: %.160s", most,
              sizes ? "their sizes" : "a number", us / 1e3,
              sizes ? "a tg_variable, or padding, makes them one" : "a tensor in its place makes them one",
              origin_of(&of->kernel[0]));
}

static void transfers(Causes *c, int64_t launches) {
  const Inside *in = c->in;
  if (in->reads >= MANY && 8 * in->reads >= launches)
    cause_add(c, "reads", (double)in->reads * HANDOVER_US,
              "%lld reads for %lld launches, %lld bytes each: the host waits for the device at each of them",
              (long long)in->reads, (long long)launches, (long long)(in->read_bytes / in->reads));
  if (in->copies >= 4 && (in->copied_us >= LEAST_SHARE * c->all || in->copied_bytes >= MANY * LARGE))
    cause_add(c, "devices", in->copied_us, "%lld copies between devices move %.1f MiB", (long long)in->copies,
              mib(in->copied_bytes));
}

static int dearer(const void *a, const void *b) {
  const Cause *x = a, *y = b;
  return (x->us < y->us) - (x->us > y->us);
}

int causes_find(const Inside *in, Cause *out) {
  Causes c = {.in = in, .at = out, .all = in->copied_us};
  int64_t launches = 0;
  for (size_t i = 0; i < in->plans.len; i++)
    for (int k = 0; k < in->plans.at[i]->nkernel; k++) {
      c.all += kernel_us(&in->plans.at[i]->kernel[k]);
      const KernelFacts *f = &in->plans.at[i]->kernel[k];
      c.estimated += f->est_us * (double)TG_MAX(f->runs, 1);
      launches += f->runs;
    }
  kernels_looked(&c);
  small_launches(&c);
  made_again(&c, true), made_again(&c, false);
  transfers(&c, launches);
  qsort(out, (size_t)c.n, sizeof *out, dearer);
  return c.n;
}
