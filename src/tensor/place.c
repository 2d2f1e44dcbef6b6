/* place.c: where tensors are. In: tensors and names of devices. Out: tensors on these devices, by COPY
 * nodes that run when the value is asked for (engine/realize.c). A node knows the devices of the memory
 * below it (UOp.devices). A node without any is a constant, and has a COPY only to say where it is
 * computed. */
#include "tensor/front.h"
#include "tensor/multi.h"

int tensor_device(const TgTensor *t) {
  if (t->memory) return t->memory->device;
  return t->uop->devices ? __builtin_ctzll(t->uop->devices) : t->ctx->default_device;
}

const char *tg_default_device(const TgContext *ctx) {
  return ctx && ctx->dev_open ? ctx->calls->facts(ctx, ctx->default_device).name : "";
}

TgStatus tg_set_default_device(TgContext *ctx, const char *device) {
  if (!ctx) return TG_ERR_VALUE;
  const char *first = ctx->dev_open ? ctx->calls->facts(ctx, 0).name : NULL;
  int d = ctx->calls->find(ctx, "set_default_device", device && *device ? device : first);
  if (d < 0) return ctx->err.status;
  TG_REQUIRE_OR(ctx, !ctx->calls->facts(ctx, d).files_only, TG_ERR_DEVICE, TG_ERR_DEVICE,
                "set_default_device: %s has files alone", device);
  ctx->default_device = ctx->draw_device = d;
  return TG_OK;
}

const char *tg_device(const TgTensor *t) {
  if (t && on_several(t->uop)) return devices_name(t->ctx, t->uop->devices);
  return t && t->ctx->dev_open ? t->ctx->calls->facts(t->ctx, tensor_device(t)).name : "";
}

const char *tg_device_describe(const TgContext *ctx) {
  return ctx && ctx->dev_open ? ctx->calls->facts(ctx, ctx->default_device).describe : "";
}

TgTensor *tensor_on(TgTensor *t, int device) {
  if (!t || (tensor_device(t) == device && !on_several(t->uop))) return t;
  UOpStore *st = t->ctx->store;
  return tensor_new(t->ctx, uop_new(st, OPS_COPY, dt(t), 1, 1, &t->uop, (Arg){.i = device}));
}

TgTensor *tensor_placed(TgTensor *t, const char *op, const char *device) {
  if (!t || !device) return t;
  if (strchr(device, ',')) {
    uint64_t all = devices_find(t->ctx, op, device);
    return all ? tensor_on_all(t, all) : NULL;
  }
  int to = t->ctx->calls->find(t->ctx, op, device);
  if (to < 0) return NULL;
  DeviceFacts d = t->ctx->calls->facts(t->ctx, to);
  TG_REQUIRE(t->ctx, tensor_device(t) == to || !d.files_only, TG_ERR_DEVICE,
             "%s: %s has files alone; tg_from_file with .writable makes one to assign to", op, d.name);
  return tensor_on(t, to);
}

TgTensor *tg_to(TgTensor *x, const char *device) {
  TgTensor *r = tensor_placed(x, "to", device ? device : x ? tg_default_device(x->ctx) : NULL);
  return r && r == x ? tensor_view(x, x->uop) : r;
}
