/* place.c: where tensors are. In: tensors and names of devices. Out: tensors on those, by COPY nodes, which
 * are run when the value is asked for (engine/realize.c). A node knows the devices of the memory below it
 * (UOp.devices); one without any is a number, and has a COPY only to say where it is computed. */
#include "tensor/front.h"

int tensor_device(const TgTensor *t) {
  if (t->memory) return t->memory->device;
  return t->uop->devices ? __builtin_ctzll(t->uop->devices) : t->ctx->default_device;
}

TgTensor *tensor_on(TgTensor *t, int device) {
  if (!t || tensor_device(t) == device) return t;
  UOpStore *st = t->ctx->store;
  return tensor_new(t->ctx, uop_new(st, OPS_COPY, dt(t), 1, 1, &t->uop, (Arg){.i = device}));
}

TgTensor *tensor_placed(TgTensor *t, const char *op, const char *device) {
  if (!t || !device) return t;
  int to = device_find(t->ctx, op, device);
  if (to < 0) return NULL;
  const Device *d = device_at(t->ctx, to);
  TG_REQUIRE(t->ctx, tensor_device(t) == to || !(d->backend->has & HAS_FILES_ONLY), TG_ERR_DEVICE,
             "%s: %s has files alone; tg_from_file with .writable makes one to assign to", op, d->name);
  return tensor_on(t, to);
}

TgTensor *tg_to(TgTensor *x, const char *device) {
  TgTensor *r = tensor_placed(x, "to", device ? device : x ? tg_default_device(x->ctx) : NULL);
  return r && r == x ? tensor_view(x, x->uop) : r;
}
