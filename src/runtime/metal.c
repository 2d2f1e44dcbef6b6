/* metal.c: the METAL device. In: kernels as MSL, memory, launches. Out: work for the GPU of a Mac. It is put
 * into one queue in order, and nobody waits for it: an error is reported by the call that notices it.
 * Building needs nothing of Apple's, because the Objective-C runtime and Metal are loaded when the device is
 * opened (metal_load.c), or emulated (TG_EMU=1, emulators.h). */
#include "runtime/metal.h"
#include "runtime/emulators.h"
#include "uop/matrix.h"
#include <stdio.h>
#include <string.h>

/* Apple's GPUs, by words of their names: number of cores, and GB/s of memory, which Metal does not report.
 * The first row that matches counts. Each row has the smaller GPU of those sold under that name. */
static const struct {
  const char *family, *kind;
  int cores;
  double gb_s;
} known[] = {{"Apple M", "Ultra", 48, 800},
             {"Apple M", "Max", 24, 400},
             {"Apple M", "Pro", 14, 200},
             {"Apple M4", "", 8, 120},
             {"Apple M", "", 7, 68}};

/* Returns the machine to plan for: the nominal one, with the values that the device reports. */
static Target target_of(const Metal *p, const char *name) {
  enum { MHZ = 1300, METAL_UNITS_SINCE = 7 };

  Target t = target_metal;
  MetalUint local = metal_most_local(&p->api, p->device);
  if (local) t.local_bytes = t.local_most = (int64_t)local;
  bool units = metal_supports_family(&p->api, p->device, METAL_FAMILY_APPLE7);
  t.matrices = units ? matrix_rows(MATRIX_METAL, METAL_UNITS_SINCE) : 0;
  if (!metal_has_bfloat(&p->api)) t.matrices &= ~(UINT32_C(1) << MATRIX_m8n8k8_bf16_f32);
  for (size_t i = 0; i < TG_COUNT(known); i++) {
    if (!strstr(name, known[i].family) || !strstr(name, known[i].kind)) continue;
    t.cores = t.streams = known[i].cores;
    t.mhz = MHZ;
    t.bytes_us[LEVEL_MEMORY] = known[i].gb_s * 1000 / known[i].cores;
    break;
  }
  return t;
}

static void describe(Device *d, Metal *p, const char *name) {
  uint64_t unused = 0, total = 0;
  metal_memory_info(d, &unused, &total);
  snprintf(p->text, sizeof p->text, "%.90s%s, %d cores, %.1f GB", name,
           metal_supports_family(&p->api, p->device, METAL_FAMILY_3) ? ", Metal 3" : "", d->target.cores,
           (double)total / 1e9);
  d->describe = p->text;
}

static TgStatus device_chosen(Device *d, Metal *p) {
  const char *colon = strchr(d->name, ':');
  MetalUint index = 0, count;
  if (colon) sscanf(colon + 1, "%lu", &index);
  MetalId all = p->api.devices();
  count = all ? metal_count(&p->api, all) : 0;
  MetalId chosen = index < count ? metal_at(&p->api, all, index) : NULL;
  if (chosen) p->device = metal_retain(&p->api, chosen);
  if (all) metal_release(&p->api, all);
  if (p->device) return TG_OK;
  if (!count) return error_set(d->err, TG_ERR_DEVICE, "%s: Metal is here, but no GPU", d->name);
  return error_set(d->err, TG_ERR_DEVICE, "%s: there %s", d->name,
                   count == 1 ? "is one GPU" : "are fewer GPUs");
}

static TgStatus gpu_opened(Device *d, Metal *p) {
  TgStatus st = device_chosen(d, p);
  if (st) return st;
  if (!metal_supports_family(&p->api, p->device, METAL_FAMILY_3) &&
      !metal_supports_family(&p->api, p->device, METAL_FAMILY_APPLE7))
    return error_set(d->err, TG_ERR_DEVICE, "%s: this GPU is older than Metal 3, whose addresses are needed",
                     d->name);
  p->finds_pipelines = metal_supports_family(&p->api, p->device, METAL_FAMILY_APPLE9);
  p->queue = metal_new_queue(&p->api, p->device);
  p->event = p->queue ? metal_new_event(&p->api, p->device) : NULL;
  return p->event ? TG_OK : metal_failed(d, "the GPU gives no queue");
}

/* Waits first, because work under way uses everything that is freed here. */
static void metal_close(Device *d) {
  Metal *p = d->priv;
  if (!p) return;
  void *pool = metal_pool(d);
  metal_queue_end(d);
  if (p->kernels.loader) kernels_close(d, &p->kernels);
  metal_module_free(d, p->bytes_module);
  metal_memory_end(d);
  MetalId held[] = {p->copied, p->copies, p->event, p->queue, p->device};
  for (size_t i = 0; i < TG_COUNT(held); i++)
    if (held[i]) metal_release(&p->api, held[i]);
  metal_unpool(d, pool, TG_OK);
  if (p->emulated)
    emulators()->metal_close();
  else
    metal_unload(d->os, &p->lib);
  mem_free(d->mem, p);
  d->priv = NULL;
}

static TgStatus opened(Device *d, Metal *p) {
  uint64_t unused = 0, total = 0;
  TgStatus st = gpu_opened(d, p);
  if (!st) st = metal_memory_info(d, &unused, &total);
  if (st) return st;
  metal_memory_begin(d, emulates_exactly(d->env) ? 0 : total / 2);
  if (!kernels_open(d, &p->kernels, &metal_loader, &renderer_metal)) return metal_oom(d);
  MetalId name = metal_name(&p->api, p->device);
  const char *text = name ? metal_text(&p->api, name) : NULL;
  if (!text) return metal_failed(d, "the GPU has no name");
  d->target = target_of(p, text);
  describe(d, p, text);
  return TG_OK;
}

static TgStatus metal_open(Device *d) {
  if (!d->os) d->os = &tg_os_default;
  Metal *p = d->priv = mem_alloc(d->mem, sizeof *p);
  if (!p) return error_no_memory(d->err, "METAL");
  TgStatus st = metal_load(d->os, d->env, d->err, &p->lib, &p->api);
  if (st) {
    mem_free(d->mem, p);
    d->priv = NULL;
    return st;
  }
  p->emulated = d->env->emulate > 0;
  void *pool = metal_pool(d);
  st = metal_unpool(d, pool, opened(d, p));
  if (st) metal_close(d);
  return st;
}

/* There is no copy_peer, so copies between two GPUs pass through the host. In captured functions, copies
 * between peers are made beside the launches. */
const TgBackend backend_metal = {.name = "METAL",
                                 .has = HAS_RUN | HAS_OWN_MEMORY | HAS_QUEUE | HAS_PEERS_ONLY,
                                 .open = metal_open,
                                 .close = metal_close,
                                 .alloc = metal_alloc,
                                 .free = metal_free,
                                 .host_alloc = metal_host_alloc,
                                 .host_free = metal_host_free,
                                 .memory_info = metal_memory_info,
                                 .copy_in = metal_copy_in,
                                 .copy_out = metal_copy_out,
                                 .copy = metal_copy_within,
                                 .clear = metal_clear,
                                 .copy_beside = metal_copy_beside,
                                 .reads_peer = metal_reads_peer,
                                 .compile = metal_compile,
                                 .unload = metal_program_free,
                                 .launch = metal_launch,
                                 .graph_new = metal_graph_new,
                                 .graph_update = metal_graph_update,
                                 .graph_launch = metal_graph_launch,
                                 .graph_free = metal_graph_free,
                                 .sync = metal_sync,
                                 .event_record = metal_event_record,
                                 .event_reach = metal_event_reach,
                                 .event_wait = metal_event_wait,
                                 .event_us = metal_event_us,
                                 .event_free = metal_event_free,
                                 .renderer = &renderer_metal};
