/* layers.c: which kernels a run of a model consists of, how long each takes, and what it computes. In:
 * launches as they are measured, the model's nodes as they are visited, the plan of the whole. Out: a table,
 * or lines of JSON. A kernel of several nodes has one time, which is not divided among them, because nobody
 * can measure their shares. */
#define _POSIX_C_SOURCE 200809L
#include "layers.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Node {
  char *name;
} Node;

typedef struct Row {
  char name[96];
  double flops, us; /* us: the median, once all runs are done */
  double *sample;   /* us of each run */
  int nsamples;
  char *nodes; /* "conv1 + relu1"; NULL: unknown */
  int *node;
  int nnodes;
} Row;

struct Layers {
  Row *row;
  int nrow, at, runs;
  /* uneven: a run had other launches; planned: the plan has the launches of the runs. */
  bool varies, uneven, planned, no_room;
  Node *node;
  TgTensor **part; /* handles made with tg_keep */
  int *node_of;    /* the node that a part belongs to */
  int nnode, npart;
};

Layers *layers_new(bool varies) {
  Layers *l = calloc(1, sizeof *l);
  if (l) l->varies = varies;
  return l;
}

void layers_free(Layers *l) {
  if (!l) return;
  for (int i = 0; i < l->nrow; i++)
    free(l->row[i].nodes), free(l->row[i].node), free(l->row[i].sample);
  for (int i = 0; i < l->nnode; i++)
    free(l->node[i].name);
  for (int i = 0; i < l->npart; i++)
    tg_release(l->part[i]);
  free(l->row), free(l->node), free(l->part), free(l->node_of);
  free(l);
}

/* Makes room for one more element in an array of n. Returns false if out of memory. */
static bool more(Layers *l, void **at, int n, size_t size) {
  if (n & (n - 1)) return true; /* the array is full only if n is a power of two */
  void *now = realloc(*at, (size_t)(n ? 2 * n : 1) * size);
  if (now)
    *at = now;
  else
    l->no_room = true;
  return now != NULL;
}

/* ---- what is measured */
void layers_run_begin(Layers *l) { l->at = 0; }

void layers_run_end(Layers *l) {
  l->uneven |= l->at != l->nrow;
  l->runs++;
}

void layers_launch(const TgLaunch *k, void *user) {
  Layers *l = user;
  if (!l->runs) {
    if (!more(l, (void **)&l->row, l->nrow, sizeof *l->row)) return;
    l->row[l->nrow] = (Row){.flops = (double)k->flops};
    snprintf(l->row[l->nrow++].name, sizeof l->row->name, "%s", k->name);
  }
  if (l->at >= l->nrow || strcmp(l->row[l->at].name, k->name)) {
    l->uneven = true;
    return;
  }
  Row *r = &l->row[l->at++];
  if (more(l, (void **)&r->sample, r->nsamples, sizeof *r->sample))
    r->sample[r->nsamples++] = k->microseconds;
}

/* The median of each launch by itself, so that a disturbance of one run does not count. */
static void medians_taken(Layers *l) {
  for (int i = 0; i < l->nrow; i++) {
    Row *r = &l->row[i];
    cli_sort(r->sample, r->nsamples);
    r->us = r->nsamples ? r->sample[r->nsamples / 2] : 0;
  }
}

/* ---- what is computed */
static bool part_add(Layers *l, TgTensor *t) {
  int64_t sizes[TG_MAX_RANK];
  for (int a = 0; a < tg_ndim(t); a++)
    sizes[a] = tg_size_of(t, a);
  TgTensor *own = tg_reshape(t, tg_ndim(t), sizes); /* a handle that no other code has */
  bool ok = own && more(l, (void **)&l->part, l->npart, sizeof *l->part) &&
            more(l, (void **)&l->node_of, l->npart, sizeof *l->node_of);
  if (ok) {
    l->part[l->npart] = tg_keep(own);
    l->node_of[l->npart++] = l->nnode - 1;
  }
  return ok;
}

void layers_node(const TgOnnxNode *n, void *user) {
  Layers *l = user;
  char name[200];
  if (n->name && *n->name)
    snprintf(name, sizeof name, "%.150s (%.40s)", n->name, n->op);
  else
    snprintf(name, sizeof name, "#%zu (%.40s)", n->number, n->op);
  bool any = false;
  for (int i = 0; i < n->nout; i++)
    any |= n->out[i] != NULL;
  if (!any || !more(l, (void **)&l->node, l->nnode, sizeof *l->node)) return;
  if (!(l->node[l->nnode].name = strdup(name))) {
    l->no_room = true;
    return;
  }
  l->nnode++;
  for (int i = 0; i < n->nout; i++)
    if (n->out[i] && !part_add(l, n->out[i])) return;
}

/* Collects the nodes of a launch, each once. The parts of a node are neighbours in the list. */
static void row_nodes(Layers *l, Row *r, const TgLaunch *k) {
  size_t room = 1;
  for (int i = 0; i < k->nparts; i++)
    room += strlen(l->node[l->node_of[k->part[i]]].name) + 3;
  r->nodes = calloc(room, 1);
  r->node = malloc(((size_t)k->nparts + 1) * sizeof *r->node);
  if (!r->nodes || !r->node) {
    l->no_room = true;
    return;
  }
  for (int i = 0; i < k->nparts; i++) {
    int node = l->node_of[k->part[i]];
    if (r->nnodes && r->node[r->nnodes - 1] == node) continue;
    if (r->nnodes) strcat(r->nodes, " + ");
    strcat(r->nodes, l->node[node].name);
    r->node[r->nnodes++] = node;
  }
}

static void launch_planned(const TgLaunch *k, void *user) {
  Layers *l = user;
  bool same = l->at < l->nrow && !strcmp(l->row[l->at].name, k->name);
  if (!same)
    l->planned = false;
  else if (l->planned)
    row_nodes(l, &l->row[l->at], k);
  l->at++;
}

bool layers_plan(Layers *l, TgTensor *const *out, int nout) {
  l->at = 0;
  l->planned = !l->uneven && !l->no_room;
  int n = tg_schedule_parts(out, (size_t)nout, l->part, (size_t)l->npart, launch_planned, l);
  l->planned = l->planned && n == l->nrow && !l->no_room;
  return n >= 0;
}

/* ---- what is shown */
static int by_time(const void *a, const void *b) {
  double x = ((const Row *)a)->us, y = ((const Row *)b)->us;
  return (x < y) - (x > y);
}

static void row_json(const Layers *l, const Row *r, double all) {
  printf("{\"kernel\":"), cli_json_text(stdout, r->name);
  printf(",\"us\":%.3f,\"share\":%.5f", r->us, all > 0 ? r->us / all : 0);
  if (!l->varies) printf(",\"flops\":%.0f", r->flops);
  for (int i = 0; l->planned && i < r->nnodes; i++) {
    printf(i ? "," : ",\"nodes\":[");
    cli_json_text(stdout, l->node[r->node[i]].name);
  }
  puts(l->planned && r->nnodes ? "]}" : "}");
}

enum { NARROW = 90 }; /* columns; on a narrower terminal the nodes are printed below their kernel */

static void head_text(const Layers *l, int wide) {
  if (wide && wide < NARROW)
    printf("%11s %8s  %s\n", "us", "share", l->planned ? "kernel, nodes" : "kernel");
  else
    printf("%11s %8s %8s  %-32s  %s\n", "us", "share", l->varies ? "" : "GFLOPS", "kernel",
           l->planned ? "nodes" : "");
}

static void row_text(const Layers *l, const Row *r, double all, int wide) {
  double us = r->us, share = all > 0 ? 100 * r->us / all : 0;
  const char *nodes = l->planned && r->nodes ? r->nodes : "";
  bool narrow = wide && wide < NARROW;
  int before = narrow ? 4 : 65, room = wide - before;
  if (narrow)
    printf("%11.2f %6.1f %%  %.*s%s%*s", us, share, wide > 40 ? wide - 22 : 18, r->name, *nodes ? "\n" : "",
           *nodes ? before : 0, "");
  else {
    char rate[32];
    snprintf(rate, sizeof rate, l->varies ? "" : "%.2f", us > 0 ? r->flops / us / 1e3 : 0);
    printf("%11.2f %6.1f %% %8s  %-32.32s  ", us, share, rate, r->name);
  }
  if (wide && (int)strlen(nodes) > room)
    printf("%.*s..\n", room > 3 ? room - 2 : 1, nodes);
  else
    printf("%s\n", nodes);
}

void layers_say(Layers *l, bool json, int most) {
  double all = 0, rest = 0;
  if (!l->runs || !l->nrow) return;
  medians_taken(l);
  for (int i = 0; i < l->nrow; i++)
    all += l->row[i].us;
  qsort(l->row, (size_t)l->nrow, sizeof *l->row, by_time);
  int shown = json || l->nrow <= most ? l->nrow : most;
  int wide = isatty(STDOUT_FILENO) ? cli_columns(STDOUT_FILENO) : 0;
  if (!json) head_text(l, wide);
  for (int i = 0; i < shown; i++) {
    if (json)
      row_json(l, &l->row[i], all);
    else
      row_text(l, &l->row[i], all, wide);
  }
  for (int i = shown; i < l->nrow; i++)
    rest += l->row[i].us;
  if (json) return;
  if (shown < l->nrow)
    printf("%11.2f %6.1f %% %8s  %d more kernels\n", rest, all > 0 ? 100 * rest / all : 0, "",
           l->nrow - shown);
  printf("%11.2f  measured one by one, medians of %d runs\n", all, l->runs);
}
