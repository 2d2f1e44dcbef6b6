/* nets.c: see nets.h. Each has the parts that give its kind its name, once or twice, as exporters write them. */
#define _GNU_SOURCE
#include "export/nets.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* A node with one result, whose name comes back. in: a form, for names. */
__attribute__((format(printf, 4, 5))) static const char *op(Net *n, const char *what, const char *attrs,
                                                            const char *in, ...) {
  char names[400];
  va_list ap;
  va_start(ap, in);
  vsnprintf(names, sizeof names, in, ap);
  va_end(ap);
  const char *out = net_name(n, "v");
  net_node(n, what, names, out, attrs);
  return out;
}

static const char *weight(Net *n, double most, int ndim, ...) {
  int64_t dims[4];
  va_list ap;
  va_start(ap, ndim);
  for (int i = 0; i < ndim; i++)
    dims[i] = va_arg(ap, int);
  va_end(ap);
  return net_floats(n, ndim, dims, -most, most);
}

static const char *number(Net *n, double v) { return net_floats(n, 0, NULL, v, v); }

static const char *whole(Net *n, int count, ...) {
  const char *name = net_name(n, "i");
  int64_t v[8], size = count;
  va_list ap;
  va_start(ap, count);
  for (int i = 0; i < count; i++)
    v[i] = va_arg(ap, int);
  va_end(ap);
  net_constant(n, name, TG_I64, 1, &size, v);
  return name;
}

/* A convolution that keeps the size but for its stride; in, out: channels. */
static const char *conv(Net *n, const char *x, int in, int out, int k, int stride, int groups) {
  char attrs[200];
  const char *w = weight(n, 1.7 / sqrt(in / groups * k * k), 4, out, in / groups, k, k);
  snprintf(attrs, sizeof attrs, "kernel_shape=%d,%d strides=%d,%d pads=%d,%d,%d,%d group=%d", k, k, stride,
           stride, (k - 1) / 2, (k - 1) / 2, k / 2, k / 2, groups);
  return op(n, "Conv", attrs, "%s %s %s", x, w, weight(n, 0.2, 1, out));
}

static const char *relu(Net *n, const char *x) { return op(n, "Relu", NULL, "%s", x); }

static const char *conv_relu(Net *n, const char *x, int in, int out, int k, int stride, int groups) {
  return relu(n, conv(n, x, in, out, k, stride, groups));
}

static const char *add(Net *n, const char *a, const char *b) { return op(n, "Add", NULL, "%s %s", a, b); }

static const char *mul(Net *n, const char *a, const char *b) { return op(n, "Mul", NULL, "%s %s", a, b); }

static const char *max_pool(Net *n, const char *x) {
  return op(n, "MaxPool", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1", "%s", x);
}

static void output_of(Net *n, const char *x) {
  net_node(n, "Identity", x, "y", NULL);
  net_output(n, "y", TG_F32);
}

static void classes_of_flat(Net *n, const char *x, int in) {
  output_of(
      n, op(n, "Gemm", "transB=1", "%s %s %s", x, weight(n, 1 / sqrt(in), 2, 10, in), weight(n, 0.2, 1, 10)));
}

static void classes(Net *n, const char *x, int channels) {
  x = op(n, "Flatten", "axis=1", "%s", op(n, "GlobalAveragePool", NULL, "%s", x));
  classes_of_flat(n, x, channels);
}

/* ---- the ten */
static void resnet(Net *n) {
  const char *x = max_pool(n, conv_relu(n, "x", 3, 16, 7, 2, 1));
  x = relu(n, add(n, conv(n, conv_relu(n, x, 16, 16, 3, 1, 1), 16, 16, 3, 1, 1), x));
  const char *y = conv(n, conv_relu(n, conv_relu(n, x, 16, 8, 1, 1, 1), 8, 8, 3, 2, 1), 8, 32, 1, 1, 1);
  classes(n, relu(n, add(n, y, conv(n, x, 16, 32, 1, 2, 1))), 32);
}

static const char *relu6(Net *n, const char *x) {
  return op(n, "Clip", NULL, "%s %s %s", x, number(n, 0), number(n, 6));
}

static const char *inverted(Net *n, const char *x, int in, int out, int stride) {
  const char *y = relu6(n, conv(n, x, in, 4 * in, 1, 1, 1));
  y = conv(n, relu6(n, conv(n, y, 4 * in, 4 * in, 3, stride, 4 * in)), 4 * in, out, 1, 1, 1);
  return in == out && stride == 1 ? add(n, x, y) : y;
}

static void mobilenet(Net *n) {
  const char *x = relu6(n, conv(n, "x", 3, 8, 3, 2, 1));
  x = inverted(n, inverted(n, inverted(n, x, 8, 8, 1), 8, 12, 2), 12, 12, 1);
  classes(n, relu6(n, conv(n, x, 12, 40, 1, 1, 1)), 40);
}

static const char *fire(Net *n, const char *x, int in, int squeezed, int out) {
  const char *s = conv_relu(n, x, in, squeezed, 1, 1, 1);
  return op(n, "Concat", "axis=1", "%s %s", conv_relu(n, s, squeezed, out, 1, 1, 1),
            conv_relu(n, s, squeezed, out, 3, 1, 1));
}

static void squeezenet(Net *n) {
  const char *x = conv_relu(n, "x", 3, 16, 3, 2, 1);
  x = op(n, "MaxPool", "kernel_shape=3,3 strides=2,2 ceil_mode=1", "%s", x);
  x = fire(n, fire(n, x, 16, 4, 12), 24, 6, 16);
  x = op(n, "GlobalAveragePool", NULL, "%s", conv_relu(n, x, 32, 10, 1, 1, 1));
  output_of(n, op(n, "Softmax", "axis=1", "%s", op(n, "Flatten", "axis=1", "%s", x)));
}

/* Channels of both halves by turns. */
static const char *shuffled(Net *n, const char *x, int channels, int side) {
  x = op(n, "Reshape", NULL, "%s %s", x, whole(n, 5, 1, 2, channels / 2, side, side));
  x = op(n, "Transpose", "perm=0,2,1,3,4", "%s", x);
  return op(n, "Reshape", NULL, "%s %s", x, whole(n, 4, 1, -1, side, side));
}

static void shufflenet(Net *n) {
  const char *x = conv_relu(n, "x", 3, 16, 3, 2, 1), *half[2];
  for (int i = 0; i < 2; i++) {
    half[0] = net_name(n, "h"), half[1] = net_name(n, "h");
    char both[100];
    snprintf(both, sizeof both, "%s %s", half[0], half[1]);
    char in[100];
    snprintf(in, sizeof in, "%s %s", x, whole(n, 2, 8, 8));
    net_node(n, "Split", in, both, "axis=1");
    const char *y = conv(n, conv_relu(n, half[1], 8, 8, 1, 1, 1), 8, 8, 3, 1, 8);
    y = conv_relu(n, y, 8, 8, 1, 1, 1);
    x = shuffled(n, op(n, "Concat", "axis=1", "%s %s", half[0], y), 16, 16);
  }
  const char *a = conv_relu(n, conv(n, x, 16, 16, 3, 2, 16), 16, 16, 1, 1, 1);
  const char *b = conv_relu(n, conv(n, conv_relu(n, x, 16, 16, 1, 1, 1), 16, 16, 3, 2, 16), 16, 16, 1, 1, 1);
  x = shuffled(n, op(n, "Concat", "axis=1", "%s %s", a, b), 32, 8);
  classes(n, conv_relu(n, x, 32, 24, 1, 1, 1), 24);
}

static const char *normal(Net *n, const char *x, int channels) {
  int64_t dims[] = {channels};
  const char *scale = net_floats(n, 1, dims, 0.5, 1.5), *variance = net_floats(n, 1, dims, 0.5, 2);
  return op(n, "BatchNormalization", "epsilon=0.00001", "%s %s %s %s %s", x, scale,
            weight(n, 0.2, 1, channels), weight(n, 0.2, 1, channels), variance);
}

static void densenet(Net *n) {
  enum { GROWTH = 8 };

  const char *x = max_pool(n, relu(n, normal(n, conv(n, "x", 3, 16, 7, 2, 1), 16)));
  int channels = 16;
  for (int block = 0; block < 2; block++) {
    for (int i = 0; i < 2; i++, channels += GROWTH) {
      const char *y = conv(n, relu(n, normal(n, x, channels)), channels, 4 * GROWTH, 1, 1, 1);
      y = conv(n, relu(n, normal(n, y, 4 * GROWTH)), 4 * GROWTH, GROWTH, 3, 1, 1);
      x = op(n, "Concat", "axis=1", "%s %s", x, y);
    }
    if (block) break;
    x = conv(n, relu(n, normal(n, x, channels)), channels, channels / 2, 1, 1, 1);
    x = op(n, "AveragePool", "kernel_shape=2,2 strides=2,2", "%s", x);
    channels /= 2;
  }
  classes(n, relu(n, normal(n, x, channels)), channels);
}

static const char *silu(Net *n, const char *x) { return mul(n, x, op(n, "Sigmoid", NULL, "%s", x)); }

/* Expanded, by windows, scaled by what all of it says, and narrowed. */
static const char *excited(Net *n, const char *x, int in, int out, int k, int stride) {
  int wide = 4 * in;
  const char *y = silu(n, conv(n, x, in, wide, 1, 1, 1));
  y = silu(n, conv(n, y, wide, wide, k, stride, wide));
  const char *s = op(n, "GlobalAveragePool", NULL, "%s", y);
  s = op(n, "Sigmoid", NULL, "%s", conv(n, silu(n, conv(n, s, wide, in, 1, 1, 1)), in, wide, 1, 1, 1));
  y = conv(n, mul(n, y, s), wide, out, 1, 1, 1);
  return in == out && stride == 1 ? add(n, y, x) : y;
}

static void efficientnet(Net *n) {
  const char *x = silu(n, conv(n, "x", 3, 8, 3, 2, 1));
  x = excited(n, excited(n, excited(n, x, 8, 8, 3, 1), 8, 12, 5, 2), 12, 12, 5, 1);
  classes(n, silu(n, conv(n, x, 12, 40, 1, 1, 1)), 40);
}

static const char *dense_relu(Net *n, const char *x, int in, int out) {
  return relu(n, op(n, "Gemm", "transB=1", "%s %s %s", x, weight(n, 1.7 / sqrt(in), 2, out, in),
                    weight(n, 0.2, 1, out)));
}

static void vgg(Net *n) {
  static const int channels[] = {3, 8, 16, 24};
  const char *x = "x";
  for (int i = 1; i < 4; i++) {
    x = conv_relu(n, conv_relu(n, x, channels[i - 1], channels[i], 3, 1, 1), channels[i], channels[i], 3, 1,
                  1);
    x = op(n, "MaxPool", "kernel_shape=2,2 strides=2,2", "%s", x);
  }
  x = op(n, "Flatten", "axis=1", "%s", x);
  classes_of_flat(n, dense_relu(n, dense_relu(n, x, 24 * 16, 48), 48, 48), 48);
}

static const char *inception(Net *n, const char *x, int in) {
  const char *a = conv_relu(n, x, in, 8, 1, 1, 1);
  const char *b = conv_relu(n, conv_relu(n, x, in, 6, 1, 1, 1), 6, 12, 3, 1, 1);
  const char *c = conv_relu(n, conv_relu(n, x, in, 3, 1, 1, 1), 3, 6, 5, 1, 1);
  const char *d = op(n, "MaxPool", "kernel_shape=3,3 strides=1,1 pads=1,1,1,1", "%s", x);
  return op(n, "Concat", "axis=1", "%s %s %s %s", a, b, c, conv_relu(n, d, in, 6, 1, 1, 1));
}

static void googlenet(Net *n) {
  const char *x = max_pool(n, conv_relu(n, "x", 3, 16, 7, 2, 1));
  x = op(n, "LRN", "size=5 alpha=0.0001 beta=0.75 bias=1.0", "%s", x);
  x = op(n, "MaxPool", "kernel_shape=3,3 strides=2,2 ceil_mode=1", "%s", inception(n, x, 16));
  classes(n, inception(n, x, 32), 32);
}

static const char *layer_normal(Net *n, const char *x, int channels) {
  int64_t dims[] = {channels};
  return op(n, "LayerNormalization", "axis=-1 epsilon=0.000001", "%s %s %s", x,
            net_floats(n, 1, dims, 0.5, 1.5), weight(n, 0.2, 1, channels));
}

static const char *gelu(Net *n, const char *x) {
  const char *e = op(n, "Erf", NULL, "%s", op(n, "Div", NULL, "%s %s", x, number(n, sqrt(2))));
  return mul(n, mul(n, x, add(n, e, number(n, 1))), number(n, 0.5));
}

static const char *dense(Net *n, const char *x, int in, int out) {
  const char *y = op(n, "MatMul", NULL, "%s %s", x, weight(n, 1.7 / sqrt(in), 2, in, out));
  return add(n, y, weight(n, 0.2, 1, out));
}

static const char *mlp(Net *n, const char *x, int width) {
  return dense(n, gelu(n, dense(n, x, width, 4 * width)), 4 * width, width);
}

static void convnext(Net *n) {
  enum { WIDTH = 16 };

  char attrs[] = "kernel_shape=4,4 strides=4,4";
  const char *x =
      op(n, "Conv", attrs, "x %s %s", weight(n, 0.2, 4, WIDTH, 3, 4, 4), weight(n, 0.2, 1, WIDTH));
  for (int i = 0; i < 2; i++) {
    const char *y = op(n, "Transpose", "perm=0,2,3,1", "%s", conv(n, x, WIDTH, WIDTH, 7, 1, WIDTH));
    y = op(n, "Transpose", "perm=0,3,1,2", "%s", mlp(n, layer_normal(n, y, WIDTH), WIDTH));
    x = add(n, mul(n, y, weight(n, 0.5, 3, WIDTH, 1, 1)), x);
  }
  classes(n, x, WIDTH);
}

/* Heads of eight numbers, over 17 places. */
static const char *attention(Net *n, const char *x, int width) {
  const char *part[3];
  for (int i = 0; i < 3; i++) {
    part[i] = op(n, "Reshape", NULL, "%s %s", dense(n, x, width, width), whole(n, 4, 1, 17, width / 8, 8));
    part[i] = op(n, "Transpose", i == 1 ? "perm=0,2,3,1" : "perm=0,2,1,3", "%s", part[i]);
  }
  const char *scores = mul(n, op(n, "MatMul", NULL, "%s %s", part[0], part[1]), number(n, 1 / sqrt(8)));
  x = op(n, "MatMul", NULL, "%s %s", op(n, "Softmax", "axis=-1", "%s", scores), part[2]);
  x = op(n, "Reshape", NULL, "%s %s", op(n, "Transpose", "perm=0,2,1,3", "%s", x), whole(n, 3, 1, 17, width));
  return dense(n, x, width, width);
}

static void vit(Net *n) {
  enum { WIDTH = 32 };

  const char *x = op(n, "Conv", "kernel_shape=8,8 strides=8,8", "x %s %s", weight(n, 0.1, 4, WIDTH, 3, 8, 8),
                     weight(n, 0.2, 1, WIDTH));
  x = op(n, "Reshape", NULL, "%s %s", x, whole(n, 3, 1, WIDTH, 16));
  x = op(n, "Transpose", "perm=0,2,1", "%s", x);
  x = op(n, "Concat", "axis=1", "%s %s", weight(n, 0.5, 3, 1, 1, WIDTH), x);
  x = add(n, x, weight(n, 0.5, 3, 1, 17, WIDTH));
  for (int i = 0; i < 2; i++) {
    x = add(n, x, attention(n, layer_normal(n, x, WIDTH), WIDTH));
    x = add(n, x, mlp(n, layer_normal(n, x, WIDTH), WIDTH));
  }
  x = op(n, "Gather", "axis=1", "%s %s", layer_normal(n, x, WIDTH), whole(n, 1, 0));
  classes_of_flat(n, op(n, "Reshape", NULL, "%s %s", x, whole(n, 2, 1, WIDTH)), WIDTH);
}

const Architecture architectures[ARCHITECTURES] = {{"resnet", resnet},
                                                   {"mobilenet v2", mobilenet},
                                                   {"squeezenet", squeezenet},
                                                   {"shufflenet v2", shufflenet},
                                                   {"densenet", densenet},
                                                   {"vgg", vgg},
                                                   {"efficientnet", efficientnet},
                                                   {"googlenet", googlenet},
                                                   {"convnext", convnext},
                                                   {"vit", vit}};
