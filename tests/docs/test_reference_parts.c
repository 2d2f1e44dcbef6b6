/* test_reference_parts.c: an example of each function that gives no tensor of its own: contexts, captured functions,
 * layers, optimisers, files, data. The reference shows them (reference.h). */
#include "reference.h"
#include <unistd.h>

static void contexts(void **state) {
  (void)state;
  printf("tinygrad-c %s\n", tg_version());

  TgContext *cpu = tg_open_with(.device = "INTERP", .seed = 1);
  printf("%s: %s\n", tg_default_device(cpu), tg_device_describe(cpu));
  tg_close(cpu);

  assert_null(tg_matmul(T("[[1.0, 2]]"), T("[[1.0, 2]]")));
  assert_string_equal(tg_status_name(tg_error(ctx)), "shape error");
  puts(tg_errmsg(ctx));
  tg_clear_error(ctx);

  assert_int_equal(tg_set_error(ctx, TG_ERR_VALUE, "my_layer: a negative width"), TG_ERR_VALUE);
  tg_clear_error(ctx);

  const char *device;
  for (int i = 0; (device = tg_device_name(i)); i++)
    puts(device);

  const char *name, *text;
  for (int i = 0; (text = tg_info(ctx, i, &name)); i++)
    printf("%s: %s\n", name, text);

  tg_counters_reset(ctx);
  tg_realize(tg_add(T("[1, 2]"), T("[3, 4]")));
  assert_int_equal(tg_counters(ctx).kernels, 1);

  int before = tg_setting(ctx, "NOOPT", 1);
  tg_setting(ctx, "NOOPT", before);

  tg_cancel(ctx);
  assert_int_equal(tg_cancelled(ctx), TG_ERR_CANCELLED);
  tg_clear_error(ctx);

  tg_sync(ctx);
  tg_cache_clear(ctx);
  tg_collect(ctx);

  assert_int_equal(tg_memory_limit(ctx, NULL, 1 << 20), TG_OK);
  assert_null(tg_map(tg_clone(tg_zeros(ctx, TG_SHAPE(1 << 20)))));
  assert_int_equal(tg_error(ctx), TG_ERR_NOMEM);
  tg_clear_error(ctx);
  tg_memory_limit(ctx, NULL, 0);

  tg_pool_limit(ctx, NULL, 64 << 20);

  assert_string_equal(tg_device_link(ctx, NULL, NULL), "same");
  assert_string_equal(tg_device_link(ctx, "CPU", "CPU:1"), "memory");
  assert_null(tg_device_link(ctx, "CPU", "GPU"));
  assert_int_equal(tg_error(ctx), TG_ERR_VALUE);
  tg_clear_error(ctx);

  int *mine = tg_alloc(ctx, 4 * sizeof *mine);
  assert_int_equal(mine[3], 0);
  tg_free(ctx, mine);

  TgTensor *kept = NULL;
  TG_SCOPE(ctx) {
    TgTensor *x = tg_exp(T("[0.0, 1]"));
    kept = tg_keep(tg_sum(x));
  }
  tg_release(kept);

  tg_scope_begin(ctx);
  TgTensor *short_lived = T("[1, 2]");
  assert_int_equal(tg_ndim(short_lived), 1);
  tg_scope_end(ctx);
}

static void devices(void **state) {
  (void)state;
  TgTensor *there = tg_to(T("[1, 2]"), "CPU:1");
  assert_string_equal(tg_device(there), "CPU:1");

  tg_set_default_device(ctx, "INTERP:1");
  assert_string_equal(tg_device(tg_clone(tg_ones(ctx, TG_SHAPE(2)))), "INTERP:1");
  tg_set_default_device(ctx, NULL);

  const char *two[] = {"INTERP", "INTERP:1"};
  TgTensor *x = tg_shard(T("[1, 2, 3]"), 2, two, 0);
  assert_int_equal(tg_shard_count(x), 2);
  assert_int_equal(tg_shard_axis(x), 0);

  int64_t bounds[3];
  tg_shard_bounds(x, bounds);
  assert_int_equal(bounds[1], 2);

  const char *pair[] = {"INTERP", "INTERP:1"};
  TgTensor *split = tg_shard(T("[1, 2, 3]"), 2, pair, 0);
  is(tg_shard_part(split, 1), "i32 (1) [3]");
  is(tg_gather_to(tg_add(split, tg_shard_like(T("[10, 10, 10]"), split)), NULL), "i32 (3) [11, 12, 13]");

  const char *both[] = {"INTERP", "INTERP:1"};
  TgTensor *everywhere = tg_replicate(T("[1, 2]"), 2, both);
  assert_int_equal(tg_shard_axis(everywhere), -1);
}

static void questions(void **state) {
  (void)state;
  TgTensor *x = tg_zeros(ctx, TG_SHAPE(2, 3));
  assert_int_equal(tg_ndim(x), 2);
  assert_int_equal(tg_shape(x)[1], 3);
  assert_int_equal(tg_dim(x, -1), 3);
  assert_int_equal(tg_numel(x), 6);
  assert_int_equal(tg_dtype(x), TG_F32);
  assert_int_equal(tg_nbytes(x), 24);
  assert_int_equal(tg_len(x), 2);
  assert_int_equal(tg_element_size(x), 4);
  assert_true(tg_is_floating_point(x));
  assert_ptr_equal(tg_context(x), ctx);

  assert_string_equal(tg_describe(tg_requires_grad(T("[1.0, 2]"), true)),
                      "tensor f32 (2) on INTERP, requires a gradient");

  assert_int_equal(tg_dtype_size(TG_BF16), 2);
  assert_string_equal(tg_dtype_name(TG_BF16), "bf16");
  assert_true(tg_dtype_is_float(TG_BF16));
  assert_int_equal(tg_dtype_join(TG_I8, TG_U8), TG_I16);

  float out[2];
  tg_read(T("[1.5, 2.5]"), out, sizeof out);
  assert_true(out[1] == 2.5f);

  double wide[2];
  tg_read_f64(T("[1, 2]"), wide, 2);

  const float *at = tg_map(T("[1.5, 2.5]"));
  assert_true(at[0] == 1.5f);

  assert_string_equal(tg_to_text(T("[[1.0, 2.5]]")), "[[1.0, 2.5]]");

  assert_true(tg_item_f64(tg_mean(T("[1.0, 2]"))) == 1.5);
  assert_int_equal(tg_item_i64(tg_sum(T("[1, 2]"))), 3);

  TgTensor *a = tg_exp(T("[0.0, 1]")), *b = tg_exp(T("[2.0, 3]"));
  tg_realize(a);
  tg_realize_many((TgTensor *[]){a, b}, 2);
}

static void variables(void **state) {
  (void)state;
  TgVariable *n = tg_variable(ctx, "n", 1, 8);
  TgTensor *part = tg_slice(tg_arange(ctx, 0, 8), 0, 0, tg_size(n));
  tg_variable_bind(n, 3);
  is(tg_sum(part), "i32 () 3");
  tg_variable_bind(n, 5);
  is(tg_sum(part), "i32 () 10");

  TgVariable *rows = tg_variable(ctx, "rows", 1, 4, .multiple_of = 2);
  tg_variable_bind(rows, 4);
  int64_t value;
  assert_true(tg_variable_value(rows, &value) && value == 4);
  assert_string_equal(tg_variable_name(rows), "rows");
  is(tg_variable_tensor(rows), "i32 () 4");
  tg_variable_unbind(rows, &value);

  TgVariable *k = tg_variable(ctx, "k", 1, 4);
  int64_t twice = tg_size_mul(ctx, tg_size(k), 2);
  int64_t more = tg_size_sub(ctx, tg_size_add(ctx, twice, 3), 1);
  tg_variable_bind(k, 2);
  is(tg_size_tensor(ctx, more, TG_I32), "i32 () 6");

  TgVariable *m = tg_variable(ctx, "m", 1, 6);
  TgTensor *head = tg_slice(T("[1, 2, 3, 4, 5, 6]"), 0, 0, tg_size(m));
  tg_variable_bind(m, 2);
  assert_true(tg_is_symbolic(head, 0));
  assert_int_equal(tg_dim(head, 0), 2);
  assert_int_equal(tg_max_shape(head)[0], 6);
  assert_int_equal(tg_max_numel(head), 6);
  is(tg_reshape(head, 2, (int64_t[]){tg_size_of(head, 0), 1}), "i32 (2, 1) [[1], [2]]");
}

static void seen_kernel(const TgKernelText *k, void *user) { *(int *)user += k->name != NULL; }

static void seen_launch(const TgLaunch *l, void *user) { *(double *)user += l->microseconds; }

static void seen_progress(const TgProgress *p, void *user) {
  (void)user;
  printf("%s %d of %d\n", p->phase, p->done, p->all);
}

static void inside(void **state) {
  (void)state;
  int kernels = 0;
  tg_watch_kernels(ctx, seen_kernel, &kernels);
  tg_realize(tg_exp(T("[0.0, 1]")));
  tg_watch_kernels(ctx, NULL, NULL);

  double us = 0;
  tg_watch_launches(ctx, seen_launch, &us);
  tg_realize(tg_exp(T("[0.0, 1]")));
  tg_watch_launches(ctx, NULL, NULL);

  tg_watch_progress(ctx, seen_progress, NULL);
  tg_realize(tg_sin(T("[0.0, 1]")));
  tg_watch_progress(ctx, NULL, NULL);

  double estimated = 0;
  TgTensor *y = tg_softmax(T("[0.0, 1, 2]"));
  assert_int_equal(tg_schedule(&y, 1, seen_launch, &estimated), 1);

  TgTensor *h = tg_relu(T("[-1.0, 2]")), *z = tg_sum(h);
  assert_int_equal(tg_schedule_parts(&z, 1, (TgTensor *[]){h, z}, 2, NULL, NULL), 1);

  TgTensor *loss = tg_mean(tg_square(T("[1.0, 2]")));
  puts(tg_explain(&loss, 1));

  TgTensor *named = tg_origin(tg_exp(T("[1.0]")), "exp (net.py:12)");
  assert_non_null(strstr(tg_origin_of(named), "net.py:12"));

  tg_name_begin(ctx, "encoder");
  TgTensor *inner = tg_origin(tg_exp(tg_origin_here(T("[1.0]"), "exp (net.c:3)")), "exp (net.c:3)");
  tg_name_end(ctx);
  puts(tg_origin_of(inner));

  TgTensor *made = tg_zeros(tg_origin_within(ctx, "zeros (net.c:4)"), TG_SHAPE(2));
  is(made, "f32 (2) [0, 0]");

  TgTensor *in = tg_clone(T("[1.0, 2]")), *out = tg_clone(tg_zeros(ctx, TG_SHAPE(2)));
  tg_kernel(ctx,
            "p0 = PARAM[f32, 0, 2](2)\n"
            "r0 = RANGE[0, GLOBAL](2)\n"
            "u2 = INDEX(p0, r0)\n"
            "p1 = PARAM[f32, 1, 2](2)\n"
            "u4 = INDEX(p1, r0)\n"
            "u5 = MUL(u4, 3:f32)\n"
            "u6 = STORE(u2, u5, r0)\n"
            "u7 = SINK(u6)\n",
            (TgTensor *[]){out, in}, 2);
  is(out, "f32 (2) [3, 6]");

  assert_string_equal(
      tg_opt(ctx, "r0 = RANGE[0, LOOP](8)\nu1 = FLOORMOD(r0, 8)\n", .pass = "initial symbolic"),
      "r0 = RANGE[0, LOOP](8)\n");

  const char *stage, *pass;
  for (int i = 0; (pass = tg_pass_name(i, &stage)); i++)
    printf("%s: %s\n", stage, pass);

  assert_non_null(tg_source_prelude(ctx));

  char path[] = "/tmp/tg-reference-XXXXXX";
  close(mkstemp(path));
  tg_profile_start(ctx, path);
  tg_realize(tg_exp(T("[0.5]")));
  tg_profile_stop(ctx);
  unlink(path);

  typedef struct MyOptions {
    size_t size;
    const char *set;
    double eps;
  } MyOptions;

  MyOptions o, given = {.size = sizeof given, .set = ".eps = 0"};
  tg_options_read(ctx, "my_norm", "MyOptions", &o, sizeof o, &given);
  assert_true(tg_option_written(o.set, "eps"));
  double eps = TG_OPTION(o, eps, 1e-5);
  assert_true(eps == 0);
}

static TgStatus doubled(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout, (void)user;
  out[0] = tg_mul_scalar(in[0], 2);
  return tg_error(c);
}

static void captured(void **state) {
  (void)state;
  TgJit *jit = tg_jit(ctx, doubled, NULL);
  TgTensor *in = tg_clone(T("[1.0, 2]")), *out;
  for (int run = 0; run < 3; run++)
    tg_jit_run(jit, &in, 1, &out, 1);
  is(out, "f32 (2) [2, 4]");
  assert_ptr_equal(tg_jit_context(jit), ctx);

  TgJitValue v;
  tg_jit_name(jit, (const char *[]){"x"}, (const char *[]){"y"});
  assert_true(tg_jit_input(jit, 0, &v) && !strcmp(v.name, "x"));
  assert_true(tg_jit_output(jit, 0, &v) && v.dtype == TG_F32);

  const char *text = tg_jit_to_text(jit, NULL, NULL, 0);
  TgJit *again = tg_jit_from_text(ctx, text, NULL, NULL, 0);
  tg_jit_run(again, &in, 1, &out, 1);
  assert_null(tg_jit_variable(again, 0));
  assert_null(tg_jit_memory(again, 0, NULL));
  tg_jit_free(again);

  TgCText c;
  tg_jit_to_c(jit, &c, .name = "doubled");
  assert_non_null(strstr(c.header, "doubled"));

  tg_jit_reset(jit);
  tg_jit_free(jit);
}

static void layers(void **state) {
  (void)state;
  TgLinear l = tg_linear_new(ctx, 3, 2, true);
  assert_int_equal(tg_dim(tg_linear_run(&l, T("[[1.0, 2, 3]]")), 1), 2);
  tg_linear_free(&l);

  TgConv2d conv = tg_conv2d_new_with(ctx, 1, 4, 3, true, .padding = TG_SIZES(1));
  assert_int_equal(tg_dim(tg_conv2d_run(&conv, tg_zeros(ctx, TG_SHAPE(1, 1, 8, 8))), 1), 4);
  tg_conv2d_free(&conv);

  TgConv2d same = tg_conv1d_new(ctx, 1, 4, 3, true, NULL);
  tg_conv2d_same(&same);
  assert_int_equal(tg_dim(tg_conv2d_run(&same, tg_zeros(ctx, TG_SHAPE(1, 1, 8))), 2), 8);
  tg_conv2d_free(&same);

  TgConv2d cube = tg_conv_new(ctx, 1, 2, 3, (int64_t[]){3, 3, 3}, true, NULL);
  assert_int_equal(tg_dim(tg_conv2d_run(&cube, tg_zeros(ctx, TG_SHAPE(1, 1, 4, 4, 4))), 4), 2);
  tg_conv2d_free(&cube);

  TgConvTranspose2d up = tg_conv_transpose2d_new_with(ctx, 4, 1, 2, true, .stride = TG_SIZES(2));
  assert_int_equal(tg_dim(tg_conv_transpose2d_run(&up, tg_zeros(ctx, TG_SHAPE(1, 4, 8, 8))), 3), 16);
  tg_conv_transpose2d_free(&up);

  TgConvTranspose2d wave = tg_conv_transpose1d_new(ctx, 4, 1, 2, true, NULL);
  assert_int_equal(tg_dim(tg_conv_transpose2d_run(&wave, tg_zeros(ctx, TG_SHAPE(1, 4, 8))), 2), 9);
  tg_conv_transpose2d_free(&wave);

  TgLayerNorm norm = tg_layer_norm_new(ctx, TG_SHAPE(3));
  is(tg_layer_norm_run(&norm, T("[[1.0, 2, 3]]")), "f32 (1, 3) [[-1.225, 0, 1.225]]");
  tg_layer_norm_free(&norm);

  TgLayerNorm2d norm2 = tg_layer_norm2d_new(ctx, 2);
  assert_int_equal(tg_dim(tg_layer_norm2d_run(&norm2, tg_zeros(ctx, TG_SHAPE(1, 2, 4, 4))), 1), 2);
  tg_layer_norm2d_free(&norm2);

  TgGroupNorm groups = tg_group_norm_new(ctx, 2, 4);
  assert_int_equal(tg_dim(tg_group_norm_run(&groups, tg_zeros(ctx, TG_SHAPE(1, 4, 8))), 1), 4);
  tg_group_norm_free(&groups);

  TgGroupNorm each = tg_instance_norm_new(ctx, 4);
  assert_int_equal(each.groups, 4);
  tg_group_norm_free(&each);

  TgRMSNorm rms = tg_rms_norm_new(ctx, 2);
  is(tg_rms_norm_run(&rms, T("[[3.0, 4]]")), "f32 (1, 2) [[0.8485, 1.131]]");
  tg_rms_norm_free(&rms);

  TgBatchNorm batch = tg_batch_norm_new(ctx, 2);
  is(tg_batch_norm_run(&batch, T("[[1.0, 2]]")), "f32 (1, 2) [[1, 2]]");
  tg_batch_norm_free(&batch);

  TgEmbedding words = tg_embedding_new(ctx, 100, 8);
  assert_int_equal(tg_dim(tg_embedding_run(&words, T("[[5, 99]]")), 2), 8);
  tg_embedding_free(&words);

  TgLSTMCell cell = tg_lstm_cell_new(ctx, 3, 4, true);
  TgTensor *c;
  TgTensor *h = tg_lstm_cell_run(&cell, T("[[1.0, 2, 3]]"), NULL, NULL, &c);
  assert_int_equal(tg_dim(h, 1), 4);
  tg_lstm_cell_free(&cell);

  TgLSTM lstm = tg_lstm_new(ctx, 3, 4, .bidirectional = true);
  TgTensor *last_h, *last_c;
  TgTensor *steps = tg_lstm_run(&lstm, tg_zeros(ctx, TG_SHAPE(5, 1, 3)), NULL, NULL, &last_h, &last_c);
  assert_int_equal(tg_dim(steps, 2), 8);
  tg_lstm_free(&lstm);

  TgGRU gru = tg_gru_new(ctx, 3, 4, .layers = 2);
  TgTensor *final;
  assert_int_equal(tg_dim(tg_gru_run(&gru, tg_zeros(ctx, TG_SHAPE(5, 1, 3)), NULL, &final), 2), 4);
  tg_gru_free(&gru);

  TgMultiheadAttention attention = tg_multihead_attention_new(ctx, 8, 2);
  TgTensor *q = tg_zeros(ctx, TG_SHAPE(5, 1, 8));
  assert_int_equal(tg_dim(tg_multihead_attention_run(&attention, q, q, q, .causal = true), 2), 8);
  tg_multihead_attention_free(&attention);
}

/* a network is a struct of layers, and a table that names them */
typedef struct Net {
  TgLinear hidden, out;
} Net;

static const TgModule *net_module(void) {
  static const TgField fields[] = {TG_LAYER(Net, hidden, tg_linear_module),
                                   TG_LAYER(Net, out, tg_linear_module)};
  static const TgModule net = {"Net", sizeof(Net), fields, 2, NULL};
  return &net;
}

static void modules(void **state) {
  (void)state;
  Net net = {tg_linear_new(ctx, 3, 4, true), tg_linear_new(ctx, 4, 2, true)};
  TgTensor *params[8];
  int n = tg_module_parameters(net_module, &net, params, 8);
  assert_int_equal(n, 4);
  assert_int_equal(tg_module_count(net_module, &net), 3 * 4 + 4 + 4 * 2 + 2);

  TgState *s = tg_state_new(ctx);
  tg_module_state(net_module, &net, s, "net");
  assert_non_null(tg_state_get(s, "net.hidden.weight"));
  tg_state_free(s);

  char text[256];
  tg_module_print(net_module, &net, text, sizeof text);
  puts(text);

  tg_module_freeze(tg_linear_module, &net.hidden, true);
  assert_int_equal(tg_module_parameters(net_module, &net, params, 8), 2);

  tg_module_cast(net_module, &net, TG_BF16);
  assert_int_equal(tg_dtype(net.out.weight), TG_BF16);

  const char *devices[] = {"INTERP", "INTERP:1"};
  tg_module_shard(net_module, &net, 2, devices, (TgShardRule[]){{"*.weight", 0}}, 1);
  assert_int_equal(tg_shard_axis(net.out.weight), 0);

  tg_module_free(net_module, &net);
}

static void one_layer_states(void **state) {
  (void)state;
  TgState *s = tg_state_new(ctx);
  TgLinear linear = tg_linear_new(ctx, 3, 2, true);
  tg_linear_state(&linear, s, "linear");
  assert_non_null(tg_state_get(s, "linear.weight"));

  TgConv2d conv = tg_conv2d_new(ctx, 1, 2, 3, true, NULL);
  tg_conv2d_state(&conv, s, "conv");
  TgConvTranspose2d up = tg_conv_transpose2d_new(ctx, 1, 2, 3, true, NULL);
  tg_conv_transpose2d_state(&up, s, "up");
  TgLayerNorm norm = tg_layer_norm_new(ctx, TG_SHAPE(3));
  tg_layer_norm_state(&norm, s, "norm");

  TgLayerNorm2d norm2 = tg_layer_norm2d_new(ctx, 2);
  tg_layer_norm2d_state(&norm2, s, "norm2");
  TgGroupNorm group = tg_group_norm_new(ctx, 1, 2);
  tg_group_norm_state(&group, s, "group");
  TgRMSNorm rms = tg_rms_norm_new(ctx, 2);
  tg_rms_norm_state(&rms, s, "rms");
  TgBatchNorm batch = tg_batch_norm_new(ctx, 2);
  tg_batch_norm_state(&batch, s, "batch");
  assert_non_null(tg_state_get(s, "batch.running_mean"));

  TgEmbedding words = tg_embedding_new(ctx, 4, 2);
  tg_embedding_state(&words, s, "words");
  TgLSTMCell cell = tg_lstm_cell_new(ctx, 2, 2, true);
  tg_lstm_cell_state(&cell, s, "cell");
  TgLSTM lstm = tg_lstm_new(ctx, 2, 2);
  tg_lstm_state(&lstm, s, "lstm");
  assert_non_null(tg_state_get(s, "lstm.weight_ih_l0"));

  TgGRU gru = tg_gru_new(ctx, 2, 2);
  tg_gru_state(&gru, s, "gru");
  TgMultiheadAttention heads = tg_multihead_attention_new(ctx, 2, 1);
  tg_multihead_attention_state(&heads, s, "heads");
  assert_non_null(tg_state_get(s, "heads.in_proj_weight"));

  tg_linear_free(&linear), tg_conv2d_free(&conv), tg_conv_transpose2d_free(&up), tg_layer_norm_free(&norm);
  tg_layer_norm2d_free(&norm2), tg_group_norm_free(&group), tg_rms_norm_free(&rms),
      tg_batch_norm_free(&batch);
  tg_embedding_free(&words), tg_lstm_cell_free(&cell), tg_lstm_free(&lstm), tg_gru_free(&gru);
  tg_multihead_attention_free(&heads);
  tg_state_free(s);
}

/* a struct with a layer of each kind: its table names theirs */
typedef struct Zoo {
  TgConv2d conv;
  TgConvTranspose2d up;
  TgLayerNorm norm;
  TgLayerNorm2d norm2;
  TgGroupNorm group;
  TgRMSNorm rms;
  TgBatchNorm batch;
  TgEmbedding words;
  TgLSTMCell cell;
  TgLSTM lstm;
  TgGRU gru;
  TgMultiheadAttention heads;
} Zoo;

static const TgModule *zoo_module(void) {
  static const TgField fields[] = {
      TG_LAYER(Zoo, conv, tg_conv2d_module),      TG_LAYER(Zoo, up, tg_conv_transpose2d_module),
      TG_LAYER(Zoo, norm, tg_layer_norm_module),  TG_LAYER(Zoo, norm2, tg_layer_norm2d_module),
      TG_LAYER(Zoo, group, tg_group_norm_module), TG_LAYER(Zoo, rms, tg_rms_norm_module),
      TG_LAYER(Zoo, batch, tg_batch_norm_module), TG_LAYER(Zoo, words, tg_embedding_module),
      TG_LAYER(Zoo, cell, tg_lstm_cell_module),   TG_LAYER(Zoo, lstm, tg_lstm_module),
      TG_LAYER(Zoo, gru, tg_gru_module),          TG_LAYER(Zoo, heads, tg_multihead_attention_module)};
  static const TgModule zoo = {"Zoo", sizeof(Zoo), fields, (int)(sizeof fields / sizeof *fields), NULL};
  return &zoo;
}

static void tables(void **state) {
  (void)state;
  Zoo zoo = {0}; /* a tensor that is NULL is one that a layer lacks */
  zoo.rms = tg_rms_norm_new(ctx, 2);
  assert_int_equal(tg_module_count(zoo_module, &zoo), 2);
  tg_module_free(zoo_module, &zoo);
}

static void optimisers(void **state) {
  (void)state;
  TgTensor *w = tg_keep(T("[1.0, 2]"));
  TgOptim *opt = tg_sgd(ctx, &w, 1, .lr = 0.1);
  tg_backward(tg_sum(tg_square(w)));
  tg_optim_step(opt);
  is(w, "f32 (2) [0.8, 1.6]");
  tg_optim_free(opt);

  TgOptim *adam = tg_adam(ctx, &w, 1, .lr = 0.1);
  tg_optim_set_lr(adam, 0.01);
  assert_true(tg_optim_lr(adam) == 0.01);
  tg_backward(tg_sum(w));
  tg_optim_zero_grad(adam);

  TgState *memory = tg_state_new(ctx);
  tg_optim_state(adam, memory, "optim");
  assert_non_null(tg_state_get(memory, "optim.state.0.exp_avg"));
  tg_state_free(memory);
  tg_optim_free(adam);

  TgOptim *many[] = {tg_adamw(ctx, &w, 1),   tg_adagrad(ctx, &w, 1), tg_adadelta(ctx, &w, 1),
                     tg_adamax(ctx, &w, 1),  tg_nadam(ctx, &w, 1),   tg_radam(ctx, &w, 1),
                     tg_rmsprop(ctx, &w, 1), tg_lamb(ctx, &w, 1),    tg_lars(ctx, &w, 1)};
  for (int i = 0; i < 9; i++)
    tg_optim_free(many[i]);

  TgTensor *matrix = tg_keep(T("[[1.0, 2], [3, 4]]"));
  TgOptim *muon = tg_muon(ctx, &matrix, 1, .lr = 0.02);

  TgOptim *both = tg_optim_group(ctx, (TgOptim *[]){muon}, 1);
  assert_ptr_equal(tg_optim_at(both, 0), muon);
  tg_backward(tg_sum(matrix));
  tg_optim_accumulate(both);
  tg_optim_step(both);
  tg_optim_free(both);
  tg_optim_free(muon);

  TgTensor *v = tg_requires_grad(tg_keep(T("[3.0, 4]")), true);
  tg_backward(tg_sum(tg_square(v)));
  is(tg_clip_grad_norm(ctx, &v, 1, 1), "f32 () 10");
  tg_clip_grad_value(ctx, &v, 1, 0.5);
  is(tg_grad(v), "f32 (2) [0.5, 0.5]");

  TgTensor *x = tg_keep(T("[1.0]"));
  TgOptim *sgd = tg_sgd(ctx, &x, 1, .lr = 1);
  TgScaler *scaler = tg_scaler(ctx, .scale = 1024);
  tg_backward(tg_scaler_scale(scaler, tg_sum(x)));
  tg_scaler_step(scaler, sgd);
  is(x, "f32 (1) [0]");
  assert_true(tg_scaler_value(scaler) == 1024);

  TgState *scale = tg_state_new(ctx);
  tg_scaler_state(scaler, scale, NULL);
  assert_int_equal(tg_state_count(scale), 2);
  tg_state_free(scale);
  tg_scaler_free(scaler);
  tg_optim_free(sgd);
}

static void rates(void **state) {
  (void)state;
  TgTensor *w = tg_keep(T("[1.0]"));
  TgOptim *opt = tg_sgd(ctx, &w, 1, .lr = 1);
  TgLR *rate = tg_lr_steps(opt, 1, .gamma = 0.5);
  tg_lr_step(rate);
  assert_true(tg_optim_lr(opt) == 0.5);
  assert_int_equal(tg_lr_epoch(rate), 1);

  TgState *s = tg_state_new(ctx);
  tg_lr_state(rate, s, NULL);
  assert_non_null(tg_state_get(s, "last_epoch"));
  tg_lr_resume(rate);
  tg_state_free(s);
  tg_lr_free(rate);

  TgLR *plateau = tg_lr_plateau(opt, .patience = 1);
  tg_lr_metric(plateau, 0.7);
  tg_lr_free(plateau);

  TgLR *parts[] = {tg_lr_exponential(opt, 0.9)};
  TgLR *group = tg_lr_group(ctx, parts, 1);
  tg_lr_step(group);
  tg_lr_free(group), tg_lr_free(parts[0]);

  const int64_t at[] = {30, 60};
  TgLR *milestones = tg_lr_multi_step(opt, at, 2);
  tg_lr_free(milestones);

  TgLR *cosine = tg_lr_cosine(opt, 100);
  tg_lr_free(cosine);

  TgLR *warm = tg_lr_warmup_cosine(opt, 10, 100);
  tg_lr_free(warm);

  TgLR *cycle = tg_lr_one_cycle(opt, 1, 100);
  tg_lr_free(cycle);
  tg_optim_free(opt);
}

static void files(void **state) {
  (void)state;
  char folder[] = "/tmp/tg-reference-XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));

  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  TgLinear model = tg_linear_new(ctx, 2, 1, true);
  TgOptim *opt = tg_sgd(ctx, &model.weight, 1);
  TgTraining t = {.size = sizeof t, .module = tg_linear_module, .model = &model, .optim = opt, .step = 5};
  tg_train_save(ctx, &t, path, NULL);
  t.step = 0;
  tg_train_load(ctx, &t, path);
  assert_int_equal(t.step, 5);

  TgState *saved = tg_state_new(ctx);
  tg_state_put(saved, "w", T("[1.0, 2]"));
  tg_safe_save(saved, path);
  TgState *read = tg_safe_load_file(ctx, path);
  is(tg_state_get(read, "w"), "f32 (2) [1, 2]");

  TgTensor *bytes = tg_from_file(ctx, path, TG_U8, TG_SHAPE(-1));
  TgValue *header = tg_safe_load_metadata(bytes, NULL);
  const TgValue *w = tg_value_get(header, "w");
  assert_string_equal(tg_value_string(tg_value_get(w, "dtype"), NULL), "F32");
  const TgValue *shape = tg_value_get(w, "shape");
  assert_int_equal(tg_value_kind(shape), TG_KIND_LIST);
  assert_int_equal(tg_value_count(shape), 1);
  assert_int_equal(tg_value_int(tg_value_at(shape, 0)), 2);
  assert_true(tg_value_float(tg_value_at(shape, 0)) == 2);
  assert_non_null(tg_value_string(tg_value_key(header, 0), NULL));
  tg_value_free(header);

  TgValue *tree = tg_value_new(ctx, TG_KIND_MAP), *names = tg_value_new(ctx, TG_KIND_LIST);
  tg_value_put_string(names, NULL, "cat", 3);
  tg_value_put_tree(tree, "names", names);
  tg_value_put_int(tree, "width", 28);
  tg_value_put_bool(tree, "grey", true);
  tg_value_put_float(tree, "mean", 0.5);
  tg_value_put_tensor(tree, "w", T("[1.0, 2]"));
  assert_int_equal(tg_value_count(tree), 5);
  tg_value_free(tree);

  tg_load_state(saved, read, .partial = true);
  assert_int_equal(tg_state_count(read), 1);
  assert_non_null(tg_get_parameters(read)[0]);
  const char *name;
  assert_non_null(tg_state_at(read, 0, &name));
  assert_null(tg_state_remove(read, "none"));
  tg_state_free(read), tg_state_free(saved);

  snprintf(path, sizeof path, "%s/x.npy", folder);
  tg_npy_save(T("[1.0, 2]"), path);
  is(tg_npy_load_file(ctx, path), "f32 (2) [1, 2]");
  unlink(path);

  TgTensorIO *io = tg_tensor_io(tg_from_bytes(ctx, "abcdef", 6, TG_U8));
  char two[2];
  tg_tensor_io_seek(io, 2, SEEK_SET);
  assert_int_equal(tg_tensor_io_read(io, two, 2), 2);
  assert_int_equal(tg_tensor_io_tell(io), 4);
  tg_tensor_io_free(io);

  TgTensor *digits[4];
  assert_int_equal(tg_mnist(ctx, "/no/such/folder", digits), TG_ERR_IO);
  tg_clear_error(ctx);

  TgTensor *pictures[4];
  assert_int_equal(tg_cifar(ctx, "/no/such/folder", pictures), TG_ERR_IO);
  tg_clear_error(ctx);

  static const unsigned char gz[] = {31, 139, 8, 0,   0,  0,  0,  0, 0, 3, 75, 76,
                                     74, 6,   0, 194, 65, 36, 53, 3, 0, 0, 0};
  is(tg_gunzip(tg_from_bytes(ctx, gz, sizeof gz, TG_U8)), "u8 (3) [97, 98, 99]");

  snprintf(path, sizeof path, "%s/kernels", folder);
  tg_bundle_save(ctx, path);
  tg_bundle_load(ctx, path);
  unlink(path);
  tg_optim_free(opt);
  tg_linear_free(&model);
  snprintf(path, sizeof path, "%s/model.safetensors", folder);
  unlink(path), rmdir(folder);
}

static void data(void **state) {
  (void)state;
  TgDataset d = tg_dataset_tensors(ctx, (TgTensor *[]){T("[[1.0], [2], [3]]"), T("[0, 1, 0]")}, 2);
  TgLoader *loader = tg_loader(ctx, &d, .batch = 2);
  assert_int_equal(tg_loader_batches(loader), 2);
  TgTensor *batch[2];
  while (tg_loader_next(loader, batch))
    assert_int_equal(tg_dim(batch[0], 1), 1);
  tg_loader_seek(loader, 1, 1);
  int64_t epoch, at;
  tg_loader_tell(loader, &epoch, &at);
  assert_true(epoch == 1 && at == 1);
  tg_loader_free(loader);
  tg_dataset_end(&d);

  TgTensor *pictures = tg_zeros(ctx, TG_SHAPE(4, 1, 8, 8), .dtype = TG_U8);
  TgDataset images = tg_dataset_images(pictures, T("[0, 1, 2, 3]"), .flip_x = 0.5, .shift = 2);
  assert_int_equal(images.count, 4);
  tg_dataset_end(&images);
}

static void models(void **state) {
  (void)state;
  const char *domain, *op = tg_onnx_op_name(0, &domain);
  assert_non_null(op);

  TgOnnx *missing = tg_onnx_describe(ctx, "no-such-model.onnx");
  assert_null(missing);
  tg_clear_error(ctx);

  assert_string_equal(tg_ggml_type_name(8), "Q8_0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define EXAMPLE(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)
      EXAMPLE(contexts),  EXAMPLE(devices),    EXAMPLE(questions),
      EXAMPLE(variables), EXAMPLE(inside),     EXAMPLE(captured),
      EXAMPLE(layers),    EXAMPLE(modules),    EXAMPLE(one_layer_states),
      EXAMPLE(tables),    EXAMPLE(optimisers), EXAMPLE(rates),
      EXAMPLE(files),     EXAMPLE(data),       EXAMPLE(models)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
