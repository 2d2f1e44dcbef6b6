/* plan.c: `tg plan`: computes what training a transformer on many devices would take, from formulae and
 * without a device. In: the number and kind of devices, and the links between them. Out: for models from 124M
 * to 7B parameters, the time of a step, the bytes that are exchanged, how much of that exchange is hidden
 * behind the backward pass, and the memory of each device. docs/many.md explains the formulae and gives their
 * sources. */
#include "cli.h"
#include <stdlib.h>
#include <string.h>

/* ---- tables of products, with their makers' figures */
typedef struct Gpu {
  const char *name;
  /* Dense bf16 operations per second; memory in bytes; its bandwidth in bytes per second. */
  double flops, bytes, bandwidth;
  double link; /* bytes per second of NVLink in one direction; 0: no NVLink */
} Gpu;

static const Gpu gpus[] = {{"A100", 312e12, 80e9, 2.04e12, 300e9},
                           {"H100", 989e12, 80e9, 3.35e12, 450e9},
                           {"H200", 989e12, 141e9, 4.8e12, 450e9}};

/* bandwidth: bytes per second in one direction; 0: that of the device. efficiency: the share of the bandwidth
 * that a protocol leaves. latency: seconds for each message. */
typedef struct Link {
  const char *name;
  double bandwidth, efficiency, latency;
} Link;

static const Link links[] = {
    {"nvlink", 0, 0.82, 3e-6}, {"infiniband", 50e9, 0.9, 5e-6}, {"ethernet", 12.5e9, 0.85, 20e-6}};

typedef struct Model {
  const char *name;
  int layers, width, inner, heads, vocabulary;
  bool gated; /* an inner layer has three matrices of width by inner, otherwise two */
} Model;

static const Model models[] = {{"GPT-2 small", 12, 768, 3072, 12, 50257, false},
                               {"GPT-2 medium", 24, 1024, 4096, 16, 50257, false},
                               {"GPT-2 large", 36, 1280, 5120, 20, 50257, false},
                               {"GPT-2 XL", 48, 1600, 6400, 25, 50257, false},
                               {"Llama 7B", 32, 4096, 11008, 32, 32000, true}};

typedef struct Options {
  const char *devices, *link;
  int64_t batch, context, machines;
  double utilisation;
  bool split, json;
} Options;

typedef struct Plan {
  int n;
  const Gpu *gpu;
  Link link;
  /* The link within a machine; with several machines, .link connects each device to other machines. */
  Link inside;
  const Options *o;
} Plan;

typedef struct Times {
  double compute, update, exchange, exposed, step; /* seconds */
  double moved;                                    /* bytes that each device sends in a step */
  double memory;                                   /* bytes on each device */
} Times;

/* ---- the formulae */
static double layer_parameters(const Model *m) {
  return 4.0 * m->width * m->width + (m->gated ? 3.0 : 2.0) * m->width * m->inner;
}

/* With gated layers, the last layer has weights of its own; otherwise it shares those of the embedding. */
static double embedding_parameters(const Model *m) {
  return (double)m->vocabulary * m->width * (m->gated ? 2 : 1);
}

static double parameters(const Model *m) { return m->layers * layer_parameters(m) + embedding_parameters(m); }

/* Operations of one device: 6 for each parameter and token (2 forward, 4 backward), and the products of
 * attention. */
static double step_flops(const Plan *p, const Model *m) {
  double tokens = (double)p->o->batch * (double)p->o->context;
  return tokens * (6 * parameters(m) + 12.0 * m->layers * m->width * (double)p->o->context);
}

/* Seconds of an all-reduce of S bytes on n devices. Each device sends 2 (n-1)/n S bytes, in 2 (n-1) messages
 * one after another. */
static double ring_seconds(const Link *l, double n, double bytes) {
  return n < 2 ? 0 : 2 * (n - 1) / n * bytes / (l->bandwidth * l->efficiency) + 2 * (n - 1) * l->latency;
}

/* An exchange in two levels: first within each machine of k devices, then of each k-th part with the same
 * part on the other machines. */
static double exchange_seconds(const Plan *p, double bytes) {
  double machines = (double)p->o->machines, k = p->n / machines;
  if (machines < 2) return ring_seconds(&p->link, p->n, bytes);
  return ring_seconds(&p->inside, k, bytes) + ring_seconds(&p->link, machines, bytes / k);
}

/* Bytes on one device: bf16 weights and gradients; f32 weights and two moments, of which each device has a
 * part if the state is split; activations of a layer, with attention computed in blocks: 34 bytes for each
 * element of width. */
static double device_bytes(const Plan *p, const Model *m) {
  double n = parameters(m), tokens = (double)p->o->batch * (double)p->o->context;
  return 4 * n + 12 * n / (p->o->split ? p->n : 1) + 34.0 * tokens * m->width * m->layers +
         4.0 * tokens * m->vocabulary;
}

/* The timeline of one step. A layer's gradients are sent once its backward pass is done and the link is free;
 * the embedding's gradients are sent last. Meanwhile the weights whose gradients have arrived are updated. */
static Times timeline(const Plan *p, const Model *m) {
  Times t = {.compute = step_flops(p, m) / (p->gpu->flops * p->o->utilisation), .memory = device_bytes(p, m)};
  double forward = t.compute / 3, backward = t.compute - forward, link_free = 0;
  for (int i = 0; i <= m->layers; i++) {
    bool last = i == m->layers;
    double bytes = 2 * (last ? embedding_parameters(m) : layer_parameters(m)); /* bf16 */
    double ready = forward + backward * (last ? 1 : (i + 1.0) / (m->layers + 1));
    double takes = exchange_seconds(p, bytes);
    link_free = (ready > link_free ? ready : link_free) + takes;
    t.exchange += takes;
    t.moved += p->n < 2 ? 0 : 2.0 * (p->n - 1) / p->n * bytes;
  }
  /* Weights, moments and gradients are read; weights and moments are written. */
  t.update = 30 * parameters(m) / (p->o->split ? p->n : 1) / p->gpu->bandwidth;
  double covered = t.compute + t.update * (1 - embedding_parameters(m) / parameters(m));
  t.exposed = link_free > covered && t.exchange > 0 ? link_free - covered : 0;
  t.step = t.compute + t.exposed + t.update;
  return t;
}

/* ---- the command */
static double hidden_of(const Times *t) { return t->exchange > 0 ? 1 - t->exposed / t->exchange : 1; }

static bool devices_read(Plan *p, const char *text) {
  char *end = NULL;
  long n = strtol(text, &end, 10);
  if (n < 1 || n > 65536 || (*end != 'x' && *end != 'X')) return false;
  p->n = (int)n;
  for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
    if (!strcmp(end + 1, gpus[i].name)) p->gpu = &gpus[i];
  return p->gpu != NULL;
}

static bool link_read(Plan *p, const char *text) {
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    if (!strcmp(text, links[i].name)) p->link = links[i];
  if (p->link.name && p->link.bandwidth == 0) p->link.bandwidth = p->gpu->link;
  return p->link.name != NULL;
}

static void row_print(const Plan *p, const Model *m, const Times *t) {
  char count[32];
  bool fits = t->memory < p->gpu->bytes;
  printf("%-13s %14s %9.1f %9.1f %9.1f %6.0f%% %9.2f %9.1f%s\n", m->name,
         cli_count((int64_t)parameters(m), count), 1e3 * t->step, 1e3 * t->compute, 1e3 * t->exchange,
         100 * hidden_of(t), t->moved / 1e9, t->memory / 1e9, fits ? "" : "  more than it has");
}

static void row_json(const Plan *p, const Model *m, const Times *t, bool last) {
  double bound = p->n < 2 ? 0 : 2.0 * (p->n - 1) / p->n * 2 * parameters(m);
  printf("  {\"model\":\"%s\",\"parameters\":%.0f,\"step_ms\":%.4f,\"compute_ms\":%.4f,\"exchange_ms\":%.4f,"
         "\"hidden\":%.4f,\"sent_bytes\":%.0f,\"least_bytes\":%.0f,\"device_bytes\":%.0f,\"fits\":%s}%s\n",
         m->name, parameters(m), 1e3 * t->step, 1e3 * t->compute, 1e3 * t->exchange, hidden_of(t), t->moved,
         bound, t->memory, t->memory < p->gpu->bytes ? "true" : "false", last ? "" : ",");
}

static int run_plan(const void *options, char **argument, int n) {
  Plan p = {.o = options};
  size_t count = sizeof models / sizeof *models;
  (void)argument, (void)n;
  if (!devices_read(&p, p.o->devices))
    return cli_refuse(CLI_USAGE, "plan", "--devices %s is not as 8xH100: a number and A100, H100 or H200",
                      p.o->devices);
  if (p.n % p.o->machines)
    return cli_refuse(CLI_USAGE, "plan", "%d devices are not as many on each of %lld machines", p.n,
                      (long long)p.o->machines);
  p.inside = links[0];
  p.inside.bandwidth = p.gpu->link;
  if (!link_read(&p, p.o->link))
    return cli_refuse(CLI_USAGE, "plan", "--link %s is none of nvlink, infiniband, ethernet", p.o->link);
  if (p.o->json)
    puts("[");
  else
    printf("%d x %s, %s at %.0f GB/s, %lld sequences of %lld tokens on each, %.0f%% of its peak\n"
           "%-13s %14s %9s %9s %9s %7s %9s %9s\n",
           p.n, p.gpu->name, p.link.name, p.link.bandwidth * p.link.efficiency / 1e9, (long long)p.o->batch,
           (long long)p.o->context, 100 * p.o->utilisation, "model", "params", "step ms", "compute",
           "exchange", "hidden", "sent GB", "memory GB");
  for (size_t i = 0; i < count; i++) {
    Times t = timeline(&p, &models[i]);
    if (p.o->json)
      row_json(&p, &models[i], &t, i + 1 == count);
    else
      row_print(&p, &models[i], &t);
  }
  if (p.o->json) puts("]");
  return CLI_OK;
}

static const Options defaults = {
    .devices = "8xH100", .link = "nvlink", .batch = 8, .context = 1024, .utilisation = 0.4, .machines = 1};

static const CliOption options[] = {
    CLI_TEXT_OF(Options, devices, "devices", "8xH100", "how many of A100, H100 or H200"),
    CLI_TEXT_OF(Options, link, "link", "NAME", "nvlink, infiniband (400 Gb/s) or ethernet (100 Gb/s)"),
    CLI_WHOLE_OF(Options, machines, "machines", 1, 65536,
                 "that the devices are on, as many on each, NVLink within (1): sums in two levels"),
    CLI_WHOLE_OF(Options, batch, "batch", 1, 65536, "sequences on each device (8)"),
    CLI_WHOLE_OF(Options, context, "context", 1, 1048576, "tokens of a sequence (1024)"),
    CLI_REAL_OF(Options, utilisation, "utilisation", 0.01, 1,
                "of a device's peak that computing reaches (0.4)"),
    CLI_FLAG_OF(Options, split, "split-state", "each device has a part of the optimiser's state"),
    CLI_FLAG_OF(Options, json, "json", "the table as objects")};

const CliCommand command_plan = {
    .name = "plan",
    .summary = "what training on many devices would take, by formulae",
    .arguments = "",
    CLI_TAKES(Options, options),
    .defaults = &defaults,
    .run = run_plan,
    .more = "Data parallel training in bf16 with AdamW. No device is asked; docs/many.md has the formulae."};
