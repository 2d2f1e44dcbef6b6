/* qdq.c: see qdq.h. The weights are random numbers; scales are chosen so that sums fill the 8 bits of
 * results. */
#define _GNU_SOURCE
#include "export/qdq.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Bytes {
  uint8_t *b;
  size_t n, cap;
} Bytes;

struct Net {
  Bytes graph;
  unsigned random;
  int count, opset;
  char names[400][40];
};

static void put_raw(Bytes *m, const void *p, size_t n) {
  if (m->n + n > m->cap) m->b = realloc(m->b, m->cap = 2 * (m->n + n) + 64);
  if (n) memcpy(m->b + m->n, p, n);
  m->n += n;
}

static void put_number(Bytes *m, uint64_t v) {
  for (; v > 127; v >>= 7)
    put_raw(m, &(uint8_t){(uint8_t)(v | 128)}, 1);
  put_raw(m, &(uint8_t){(uint8_t)v}, 1);
}

static void put_int(Bytes *m, int field, int64_t v) {
  put_number(m, (uint64_t)field << 3), put_number(m, (uint64_t)v);
}

static void put_bytes(Bytes *m, int field, const void *p, size_t n) {
  put_number(m, (uint64_t)field << 3 | 2), put_number(m, n), put_raw(m, p, n);
}

static void put_text(Bytes *m, int field, const char *t) { put_bytes(m, field, t, strlen(t)); }

static void put_part(Bytes *m, int field, Bytes *x) {
  put_bytes(m, field, x->b, x->n);
  free(x->b);
}

static int data_type(TgDType d) {
  return d == TG_F32 ? 1 : d == TG_U8 ? 2 : d == TG_I8 ? 3 : d == TG_I16 ? 5 : d == TG_I32 ? 6 : 7;
}

Net *net_new(void) {
  Net *n = calloc(1, sizeof *n);
  n->random = 12345;
  n->opset = 18;
  return n;
}

void net_opset(Net *n, int opset) { n->opset = opset; }

void net_free(Net *n) {
  free(n->graph.b);
  free(n);
}

TgOnnx *net_open(Net *n, TgContext *c) {
  Bytes m = {0}, opset = {0};
  put_int(&opset, 2, n->opset), put_int(&m, 1, 8);
  put_bytes(&m, 7, n->graph.b, n->graph.n);
  put_part(&m, 8, &opset);
  opset = (Bytes){0};
  put_text(&opset, 1, "com.microsoft"), put_int(&opset, 2, 1), put_part(&m, 8, &opset);
  TgOnnx *o = tg_onnx_load(tg_from_bytes(c, m.b, m.n, TG_U8));
  free(m.b);
  return o;
}

static void put_value(Net *n, int field, const char *name, TgDType d, int ndim, const int64_t *dims) {
  Bytes shape = {0}, tensor = {0}, type = {0}, value = {0};
  for (int i = 0; i < ndim; i++) {
    Bytes dim = {0};
    put_int(&dim, 1, dims[i]), put_part(&shape, 1, &dim);
  }
  put_int(&tensor, 1, data_type(d));
  if (ndim >= 0) put_part(&tensor, 2, &shape);
  put_part(&type, 1, &tensor), put_text(&value, 1, name), put_part(&value, 2, &type),
      put_part(&n->graph, field, &value);
}

void net_input(Net *n, const char *name, TgDType d, int ndim, const int64_t *dims) {
  put_value(n, 11, name, d, ndim, dims);
}

void net_output(Net *n, const char *name, TgDType d) { put_value(n, 12, name, d, -1, NULL); }

void net_constant(Net *n, const char *name, TgDType d, int ndim, const int64_t *dims, const void *values) {
  Bytes t = {0};
  size_t count = 1;
  for (int i = 0; i < ndim; i++)
    put_int(&t, 1, dims[i]), count *= (size_t)dims[i];
  put_int(&t, 2, data_type(d)), put_text(&t, 8, name), put_bytes(&t, 9, values, count * tg_dtype_size(d));
  put_part(&n->graph, 5, &t);
}

static void put_names(Bytes *m, int field, const char *names) {
  char text[400];
  snprintf(text, sizeof text, "%s", names);
  for (char *next, *s = strtok_r(text, " ", &next); s; s = strtok_r(NULL, " ", &next))
    put_text(m, field, strcmp(s, "-") ? s : "");
}

/* name=3, name=0.5, name=1,2, name='text' */
static void put_attr(Bytes *node, char *text) {
  Bytes a = {0};
  char *v = strchr(text, '=');
  *v++ = 0;
  put_text(&a, 1, text);
  if (*v == '\'') {
    put_int(&a, 20, 3), put_bytes(&a, 4, v + 1, strlen(v) - 2);
  } else if (strchr(v, ',')) {
    put_int(&a, 20, 7);
    for (char *end = v; *v; v = *end ? end + 1 : end)
      put_int(&a, 8, strtoll(v, &end, 10));
  } else if (strchr(v, '.')) {
    float f = strtof(v, NULL);
    put_int(&a, 20, 1), put_number(&a, 2 << 3 | 5), put_raw(&a, &f, 4);
  } else
    put_int(&a, 20, 2), put_int(&a, 3, strtoll(v, NULL, 10));
  put_part(node, 5, &a);
}

void net_node(Net *n, const char *op, const char *in, const char *out, const char *attrs) {
  Bytes node = {0};
  char text[200];
  put_names(&node, 1, in), put_names(&node, 2, out), put_text(&node, 3, out), put_text(&node, 4, op);
  if (!strncmp(op, "QLinear", 7) && strcmp(op, "QLinearConv") && strcmp(op, "QLinearMatMul"))
    put_text(&node, 7, "com.microsoft");
  snprintf(text, sizeof text, "%s", attrs ? attrs : "");
  for (char *next, *s = strtok_r(text, " ", &next); s; s = strtok_r(NULL, " ", &next))
    put_attr(&node, s);
  put_part(&n->graph, 1, &node);
}

/* ---- parts */
const char *net_name(Net *n, const char *what) {
  char *name = n->names[n->count];
  snprintf(name, sizeof n->names[0], "%s%d", what, n->count++);
  return name;
}

static int random_of(Net *n, int lo, int hi) {
  n->random = n->random * 1664525u + 1013904223u;
  return lo + (int)((n->random >> 8) % (unsigned)(hi - lo + 1));
}

const char *net_floats(Net *n, int ndim, const int64_t *dims, double lo, double hi) {
  const char *name = net_name(n, "f");
  size_t count = 1;
  for (int i = 0; i < ndim; i++)
    count *= (size_t)dims[i];
  float *v = malloc(count * sizeof *v);
  for (size_t i = 0; i < count; i++)
    v[i] = (float)(lo + (hi - lo) * random_of(n, 0, 1 << 20) / (1 << 20));
  net_constant(n, name, TG_F32, ndim, dims, v);
  free(v);
  return name;
}

static const char *scale_constant(Net *n, double scale, int64_t count, bool each) {
  const char *name = net_name(n, "scale");
  float *v = malloc((size_t)count * sizeof *v);
  for (int64_t i = 0; i < count; i++)
    v[i] = (float)(scale * (each ? 0.75 + 0.5 * (double)(i % 7) / 7 : 1));
  net_constant(n, name, TG_F32, each ? 1 : 0, &count, v);
  free(v);
  return name;
}

static const char *zero_constant(Net *n, int zero, TgDType d) {
  const char *name = net_name(n, "zero");
  net_constant(n, name, d, 0, NULL, &zero); /* the low byte comes first */
  return name;
}

const char *net_scale(Net *n, double scale) { return scale_constant(n, scale, 1, false); }

const char *net_zero(Net *n, int zero, TgDType d) { return zero_constant(n, zero, d); }

const char *net_quantised(Net *n, const char *x, double scale, int zero, bool signed_) {
  return net_quantised_as(n, x, scale, zero, signed_ ? TG_I8 : TG_U8);
}

const char *net_quantised_as(Net *n, const char *x, double scale, int zero, TgDType d) {
  const char *s = scale_constant(n, scale, 1, false), *z = zero_constant(n, zero, d);
  const char *q = net_name(n, "q"), *y = net_name(n, "y");
  char in[200];
  snprintf(in, sizeof in, "%s %s %s", x, s, z), net_node(n, "QuantizeLinear", in, q, NULL);
  snprintf(in, sizeof in, "%s %s %s", q, s, z), net_node(n, "DequantizeLinear", in, y, NULL);
  return y;
}

static const char *random_bytes(Net *n, int ndim, const int64_t *dims) {
  const char *name = net_name(n, "w");
  size_t count = 1;
  for (int i = 0; i < ndim; i++)
    count *= (size_t)dims[i];
  int8_t *v = malloc(count);
  for (size_t i = 0; i < count; i++)
    v[i] = (int8_t)random_of(n, -127, 127);
  net_constant(n, name, TG_I8, ndim, dims, v);
  free(v);
  return name;
}

const char *net_weight(Net *n, int ndim, const int64_t *dims, double scale, int axis) {
  const char *w = random_bytes(n, ndim, dims), *y = net_name(n, "d");
  const char *s = scale_constant(n, scale, axis < 0 ? 1 : dims[axis], axis >= 0);
  char in[200];
  snprintf(in, sizeof in, "%s %s", w, s);
  net_node(n, "DequantizeLinear", in, y, axis == 1 ? "axis=1" : "axis=0");
  return y;
}

static const char *bias_words(Net *n, int64_t channels) {
  const char *name = net_name(n, "b");
  int32_t *v = malloc((size_t)channels * sizeof *v);
  for (int64_t i = 0; i < channels; i++)
    v[i] = random_of(n, -3000, 3000);
  net_constant(n, name, TG_I32, 1, &channels, v);
  free(v);
  return name;
}

const char *net_bias(Net *n, int64_t channels, double x_scale, double w_scale, bool each) {
  const char *b = bias_words(n, channels), *s = scale_constant(n, x_scale * w_scale, channels, each),
             *y = net_name(n, "e");
  char in[200];
  snprintf(in, sizeof in, "%s %s", b, s);
  net_node(n, "DequantizeLinear", in, y, "axis=0");
  return y;
}

/* ---- networks. A layer of `terms` products a sum: its result has a scale by which the sums fill 8 bits. */
typedef struct Layer {
  const char *x;
  double scale;
} Layer;

static double filled(double x_scale, double w_scale, double terms) {
  return x_scale * w_scale * 73 * 73 * sqrt(terms) / 40;
}

static Layer conv_layer(Net *n, Layer x, int64_t in, int64_t out, int64_t h, int64_t w, const char *attrs,
                        bool alone) {
  int64_t dims[] = {out, alone ? 1 : in, h, w};
  double s = 0.01, to = filled(x.scale, s, (double)((alone ? 1 : in) * h * w));
  char names[200];
  const char *weight = net_weight(n, 4, dims, s, 0), *bias = net_bias(n, out, x.scale, s, true),
             *y = net_name(n, "c"), *r = net_name(n, "r");
  snprintf(names, sizeof names, "%s %s %s", x.x, weight, bias);
  net_node(n, "Conv", names, y, attrs);
  net_node(n, "Relu", y, r, NULL);
  return (Layer){net_quantised(n, r, to, 0, false), to};
}

static void ending(Net *n, Layer x, int64_t in, int64_t classes) {
  int64_t dims[] = {classes, in};
  double s = 0.01, to = filled(x.scale, s, (double)in);
  char names[200];
  const char *w = net_weight(n, 2, dims, s, -1), *b = net_bias(n, classes, x.scale, s, false),
             *y = net_name(n, "g");
  snprintf(names, sizeof names, "%s %s %s", x.x, w, b);
  net_node(n, "Gemm", names, y, "transB=1");
  const char *last = net_quantised(n, y, to, 3, true);
  net_node(n, "Identity", last, "unused", NULL);
  net_output(n, last, TG_F32);
}

/* QLinearConv by hand: the same layer without floats between. */
static const char *q_conv(Net *n, const char *x, double x_scale, int64_t in, int64_t out, double *to) {
  int64_t dims[] = {out, in, 5, 5};
  double s = 0.01;
  *to = filled(x_scale, s, (double)in * 25);
  char names[300];
  const char *y = net_name(n, "c");
  snprintf(names, sizeof names, "%s %s %s %s %s %s %s %s %s", x, scale_constant(n, x_scale, 1, false),
           zero_constant(n, 0, TG_U8), random_bytes(n, 4, dims), scale_constant(n, s, out, true),
           zero_constant(n, 0, TG_I8), scale_constant(n, *to, 1, false), zero_constant(n, 10, TG_U8),
           bias_words(n, out));
  net_node(n, "QLinearConv", names, y, "pads=2,2,2,2");
  return y;
}

static Net *digit_of_q(void) {
  Net *n = net_new();
  double s = 1.0 / 255, t, u;
  char names[300];
  int64_t wide[] = {784, 10}, flat[] = {1, 784};
  net_input(n, "x", TG_U8, 4, (int64_t[]){1, 1, 28, 28});
  net_constant(n, "flat", TG_I64, 1, (int64_t[]){2}, flat);
  const char *a = q_conv(n, "x", s, 1, 8, &t), *b = net_name(n, "p");
  net_node(n, "MaxPool", a, b, "kernel_shape=2,2 strides=2,2");
  const char *c = q_conv(n, b, t, 8, 16, &u), *d = net_name(n, "p"), *f = net_name(n, "f");
  net_node(n, "MaxPool", c, d, "kernel_shape=2,2 strides=2,2");
  snprintf(names, sizeof names, "%s flat", d), net_node(n, "Reshape", names, f, NULL);
  snprintf(names, sizeof names, "%s %s %s %s %s %s %s %s", f, scale_constant(n, u, 1, false),
           zero_constant(n, 10, TG_U8), random_bytes(n, 2, wide), scale_constant(n, .02, 1, false),
           zero_constant(n, 0, TG_I8), scale_constant(n, filled(u, .02, 784), 1, false),
           zero_constant(n, 0, TG_I8));
  net_node(n, "QLinearMatMul", names, "out", NULL);
  net_output(n, "out", TG_I8);
  return n;
}

static Layer pooled(Net *n, Layer x) {
  const char *y = net_name(n, "p");
  net_node(n, "MaxPool", x.x, y, "kernel_shape=2,2 strides=2,2");
  return (Layer){y, x.scale};
}

Net *net_digit(bool q) {
  if (q) return digit_of_q();
  Net *n = net_new();
  net_input(n, "x", TG_F32, 4, (int64_t[]){1, 1, 28, 28});
  Layer x = {net_quantised(n, "x", 1.0 / 255, 0, false), 1.0 / 255};
  x = pooled(n, conv_layer(n, x, 1, 8, 5, 5, "pads=2,2,2,2", false));
  x = pooled(n, conv_layer(n, x, 8, 16, 5, 5, "pads=2,2,2,2", false));
  const char *f = net_name(n, "f");
  net_node(n, "Flatten", x.x, f, NULL);
  ending(n, (Layer){f, x.scale}, 16 * 49, 10);
  return n;
}

/* A convolution, pairs of one by channels and one of 1 x 1 with a sum around them, an average, a product. */
Net *net_keyword(void) {
  enum { CHANNELS = 24, WORDS = 12 };

  Net *n = net_new();
  char names[200];
  net_input(n, "x", TG_F32, 4, (int64_t[]){1, 1, 49, 10});
  Layer x = {net_quantised(n, "x", 0.03, -4, true), 0.03};
  x = conv_layer(n, x, 1, CHANNELS, 10, 4, "strides=2,2 pads=5,2,5,2", false);
  for (int i = 0; i < 3; i++) {
    Layer y = conv_layer(n, x, CHANNELS, CHANNELS, 3, 3, "group=24 pads=1,1,1,1", true);
    y = conv_layer(n, y, CHANNELS, CHANNELS, 1, 1, NULL, false);
    const char *sum = net_name(n, "sum"), *h = net_name(n, "h");
    snprintf(names, sizeof names, "%s %s", x.x, y.x), net_node(n, "Add", names, sum, NULL);
    if (i == 1) net_node(n, "HardSwish", sum, h, NULL); /* a table */
    double to = fmax(x.scale, y.scale) * 1.3;
    x = (Layer){net_quantised(n, i == 1 ? h : sum, to, 5, false), to};
  }
  const char *mean = net_name(n, "m"), *f = net_name(n, "f");
  net_node(n, "GlobalAveragePool", x.x, mean, NULL);
  x.x = net_quantised(n, mean, x.scale, 0, false);
  net_node(n, "Flatten", x.x, f, NULL);
  ending(n, (Layer){f, x.scale}, CHANNELS, WORDS);
  return n;
}
