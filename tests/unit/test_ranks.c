/* test_ranks.c: ranks. This program runs itself as several processes under `tg launch`; each does what ROLE
 * says and tells in a file of its own how it ended. Expected values are those of one process, or by hand. */
#define _GNU_SOURCE
#include "emu/nccl_mock.h"
#include "tg.h"
#include "tg_io.h"
#include <arpa/inet.h>
#include <dirent.h>
#ifdef __linux__
#include <linux/tcp.h>
#endif
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

enum { MOST = 8 };

/* ==== a rank */
static TgContext *C;
static const char *D[MOST];
static int rank, size, victim;

static int number(const char *name) {
  const char *text = getenv(name);
  return text ? atoi(text) : 0;
}

static void check(int line, bool right) {
  if (right) return;
  fprintf(stderr, "rank %d, line %d: %s\n", rank, line, tg_errmsg(C));
  exit(3);
}

#define CHECK(right) check(__LINE__, (right))

static TgTensor *counted(int rows, int columns) { /* 0, 1, 2 .. */
  float *v = malloc(sizeof *v * (size_t)(rows * columns + 1));
  for (int i = 0; i < rows * columns; i++)
    v[i] = (float)i;
  TgTensor *t = tg_from(C, v, TG_F32, TG_SHAPE(rows, columns));
  free(v);
  return t;
}

/* A round of what ranks exchange: a sum of all, a product by the inner axis, a gather, a read. */
static bool round_done(int k, double *sum) {
  bool ok = false;
  TG_SCOPE(C) {
    TgTensor *x = tg_shard(tg_add_scalar(counted(7, 33), k), size, D, 0);
    TgTensor *w = tg_shard(counted(7, 5), size, D, 0), *y = tg_matmul(tg_transpose(x, 0, 1), w);
    TgTensor *all = tg_gather_to(tg_relu(x), D[k % size]);
    float one;
    ok = !tg_realize(y) && !tg_read(tg_slice(tg_reshape(all, TG_SHAPE(-1)), 0, 0, 1), &one, sizeof one) &&
         one == (float)k;
    if (ok) *sum = tg_item_f64(tg_sum(y));
    ok = ok && !tg_error(C);
  }
  return ok;
}

static double round_expected(int k) {
  double sum = 0;
  for (int i = 0; i < 33; i++)
    for (int j = 0; j < 5; j++)
      for (int r = 0; r < 7; r++)
        sum += (double)(r * 33 + i + k) * (r * 5 + j);
  return sum;
}

static void rounds_right(int n) {
  for (int k = 0; k < n; k++) {
    double sum = 0;
    CHECK(round_done(k, &sum));
    CHECK(sum > round_expected(k) * (1 - 1e-6) && sum < round_expected(k) * (1 + 1e-6));
  }
}

/* One rank reads what is whole on each, split, on one rank and on none; the others have no memory for it. */
static void read_alone(void) {
  TgTensor *x = tg_cast(tg_arange(C, 0, 35), TG_F32),
           *t[] = {tg_replicate(x, size, D), tg_shard(x, size, D, 0), tg_to(x, D[size - 1]), x,
                   tg_flip(tg_shard(tg_reshape(x, TG_SHAPE(5, 7)), size, D, 1), TG_SHAPE(0, 1))};
  for (int k = 0; k < 5; k++)
    for (int r = 0; r < size; r++) {
      float v[35] = {0}, want[35];
      CHECK(!tg_comm_read(t[k], r, r == rank ? v : NULL, sizeof v) && !tg_read(t[k], want, sizeof want));
      for (int i = 0; i < 35; i++)
        CHECK(want[i] == (float)(k == 4 ? 34 - i : i) && (r != rank || v[i] == want[i]));
    }
  CHECK(tg_comm_read(x, size, (float[35]){0}, 140) == TG_ERR_VALUE);
  tg_clear_error(C);
}

static void works(void) {
  CHECK(size == number("TG_COMM_SIZE") && rank == number("TG_COMM_RANK"));
  rounds_right(20);
  int64_t most = 10 * rank + 1;
  CHECK(!tg_comm_max(C, &most) && most == 10 * (size - 1) + 1);
  TgTensor *r = tg_rand(C, TG_SHAPE(4)),
           *all = tg_to(tg_to(r, D[size - 1]), D[0]); /* rank 0's seed is all's */
  float here[4], there[4];
  CHECK(!tg_read(r, here, sizeof here) && !tg_read(all, there, sizeof there) &&
        !memcmp(here, there, sizeof here));
  TgTensor *large = tg_replicate(tg_cast(tg_arange(C, 0, 1 << 20), TG_F32), size, D);
  double sum = tg_item_f64(tg_max(tg_to(tg_mul_scalar(tg_shard_part(large, size - 1), 2), D[0])));
  CHECK(sum == 2.0 * ((1 << 20) - 1));
  CHECK(!tg_map(tg_to(r, D[0])) && tg_error(C) == TG_ERR_DEVICE);
  tg_clear_error(C);
  read_alone();
  CHECK(!tg_matmul(tg_shard(r, size, D, 0), tg_shard(tg_ones(C, TG_SHAPE(5)), size, D, 0)));
  tg_clear_error(C); /* an error that all have: they go on */
  CHECK(!tg_to(r, "CPU@15") && tg_error(C) == TG_ERR_VALUE);
  tg_clear_error(C);
  CHECK(!tg_to(r, "NONE@0") && tg_error(C) == TG_ERR_VALUE);
  tg_clear_error(C);
  if (!getenv("TG_EMU")) CHECK(!tg_to(r, "CUDA@0") && tg_error(C) == TG_ERR_DEVICE); /* rank 0 says why */
  tg_clear_error(C);
  rounds_right(3);
  tg_close(C);
  C = tg_open(NULL); /* a group again */
  CHECK(tg_comm_devices(C, NULL, MOST, D) == size);
  rounds_right(2);
}

static void rounds_without_end(void) {
  double sum;
  for (int k = 0; round_done(k, &sum) && k < 1000000; k++) {}
}

static void killed(void) {
  int us = number("AFTER_US");
  struct itimerval at = {.it_value = {us / 1000000, us % 1000000}};
  double sum;
  round_done(0, &sum);
  if (rank == victim) signal(SIGALRM, SIG_DFL), setitimer(ITIMER_REAL, &at, NULL);
  rounds_without_end();
}

/* As killed, while all write a file again and again. */
static void killed_saving(void) {
  int us = number("AFTER_US");
  struct itimerval at = {.it_value = {us / 1000000, us % 1000000}};
  TgTensor *x = tg_keep(tg_shard(counted(64, 1000), size, D, 0));
  TgState *s = tg_state_new(C);
  TgTensor *zero = tg_keep(tg_shard(tg_zeros(C, TG_SHAPE(64, 1000)), size, D, 1));
  CHECK(!tg_realize(x) && !tg_state_put(s, "zero", zero) && !tg_state_put(s, "x", x) &&
        !tg_safe_save(s, getenv("SAVED")));
  if (rank == victim) signal(SIGALRM, SIG_DFL), setitimer(ITIMER_REAL, &at, NULL);
  while (!tg_safe_save(s, getenv("SAVED"))) {}
  tg_state_free(s);
}

static void dies(void) {
  rounds_right(2);
  if (rank == victim) raise(SIGKILL);
  rounds_without_end();
}

static void hangs(void) {
  rounds_right(2);
  if (rank == victim) raise(SIGSTOP);
  rounds_without_end();
}

static void leaves(void) {
  rounds_right(2);
  if (rank == victim) return;
  rounds_without_end();
}

static void fails(void) {
  rounds_right(2);
  if (rank == victim) tg_memory_limit(C, D[rank], 100);
  rounds_without_end();
}

static void other_shape(void) {
  rounds_right(2);
  tg_item_f64(tg_sum(tg_shard(counted(rank == victim ? 9 : 8, 4), size, D, 0)));
}

static void other_constant(void) {
  rounds_right(2);
  tg_item_f64(tg_sum(tg_add_scalar(tg_shard(counted(8, 4), size, D, 0), rank == victim ? 2 : 3)));
}

static void one_call_more(void) {
  rounds_right(2);
  if (rank == victim) tg_item_f64(tg_sum(tg_to(counted(8, 4), D[victim])));
  rounds_without_end();
}

/* ---- sums in two levels */
/* Ranks 0, 1 and 2, 3 are on a machine each: its sums are added up there first, and then both. */
static void rounds(void) { rounds_right(3); }

static void two_levels(void) {
  enum { ROWS = 3, N = 40970 };

  static float all[4 * ROWS * N], want[N], got[N];
  uint32_t random = 9;
  for (int i = 0; i < 4 * ROWS * N; i++)
    random = random * 1664525 + 1013904223, all[i] = (float)(random >> 8) / (1 << 20) - 8;
  for (int i = 0; i < N; i++) {
    float part[4];
    for (int r = 0; r < 4; r++)
      part[r] = all[r * N + i];
    want[i] = (part[0] + part[1]) + (part[2] + part[3]);
  }
  TgTensor *x = tg_shard(tg_from(C, all, TG_F32, TG_SHAPE(4, N)), size, D, 0);
  CHECK(!tg_realize(x));
  uint64_t before = tg_counters(C).bytes_copied;
  CHECK(!tg_read(tg_sum(x, .axis = TG_AXES(0)), got, sizeof got));
  CHECK(!memcmp(got, want, sizeof got));
  int64_t mine = (int64_t)(tg_counters(C).bytes_copied - before), most = mine, sum = 0;
  for (int r = 0; r < size; r++) {
    most = r == rank ? mine : 0;
    CHECK(!tg_comm_max(C, &most));
    sum += most;
  }
  CHECK(sum == 2 * (size - 1) * (int64_t)sizeof want); /* the least that moves */
  TgTensor *i = tg_sum(tg_shard(tg_cast(tg_from(C, all, TG_F32, TG_SHAPE(4 * ROWS, N)), TG_I32), size, D, 0));
  CHECK(tg_item_i64(i) ==
        tg_item_i64(tg_sum(tg_cast(tg_from(C, all, TG_F32, TG_SHAPE(4 * ROWS, N)), TG_I32))));
}

/* ---- exchanges beside kernels */
enum { LAYERS = 8 };

static int net_sized = 96;
static double tolerance; /* of kernels that are not the same */

typedef struct Net {
  TgTensor *w[LAYERS];
} Net;

static TgStatus net_step(TgContext *c, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  Net *net = user;
  TgTensor *y = in[0], *grad[LAYERS];
  (void)nin, (void)nout;
  for (int i = 0; i < LAYERS; i++)
    y = tg_tanh(tg_matmul(y, net->w[i]));
  out[0] = tg_mean(tg_mul(y, y));
  if (tg_gradient(out[0], net->w, LAYERS, grad)) return tg_error(c);
  for (int i = 0; i < LAYERS; i++)
    tg_assign(net->w[i], tg_sub(net->w[i], tg_mul_scalar(grad[i], 0.5)));
  return tg_error(c);
}

static void net_made(Net *net) {
  for (int i = 0; i < LAYERS; i++) {
    TgTensor *w = tg_sub_scalar(tg_rand(C, TG_SHAPE(net_sized, net_sized)), 0.5);
    CHECK(!tg_realize(w));
    net->w[i] = tg_keep(tg_replicate(w, size, D));
    CHECK(!tg_realize(net->w[i]));
  }
}

/* Bytes that went out while the plan still had kernels to run, of all that a replay sent beside
 * kernels. */
static double hidden_in(const char *path) {
  double early = 0, all = 0, waiting = 0;
  char line[4096];
  long long plan = -1;
  FILE *f = fopen(path, "r");
  CHECK(f != NULL);
  while (fgets(line, sizeof line, f)) {
    const char *at = strstr(line, "\"plan\":"), *bytes = strstr(line, "\"bytes\":");
    bool sent = strstr(line, "send\",\"cat\":\"host\"") && strstr(line, "\"beside\":true");
    if (sent && bytes) all += atof(bytes + 8), waiting += atof(bytes + 8);
    if (!at) continue;
    if (atoll(at + 7) == plan) early += waiting;
    plan = atoll(at + 7), waiting = 0;
  }
  fclose(f);
  return all > 0 ? early / all : 0;
}

/* The losses of captured steps, with exchanges beside kernels, are those of steps that are not captured. */
static void overlaps(void) {
  Net captured, plain;
  double had[6], share = 0;
  char path[300];
  snprintf(path, sizeof path, "%s/profile%d", getenv("SAYS"), rank);
  TgTensor *x = tg_keep(tg_shard(tg_sub_scalar(tg_rand(C, TG_SHAPE(64, net_sized)), 0.5), size, D, 0));
  CHECK(!tg_realize(x));
  net_made(&plain);
  for (int i = 0; i < LAYERS; i++)
    CHECK(!tg_realize(captured.w[i] = tg_keep(tg_mul_scalar(plain.w[i], 1))));
  TgJit *j = tg_jit(C, net_step, &captured);
  for (int i = 0; i < 6; i++)
    TG_SCOPE(C) {
      TgTensor *loss, *same;
      if (i == 5) CHECK(!tg_profile_start(C, path));
      CHECK(!tg_jit_run(j, &x, 1, &same, 1));
      if (i == 5) CHECK(!tg_profile_stop(C));
      had[i] = tg_item_f64(same);
      CHECK(!net_step(C, &x, 1, &loss, 1, &plain));
      double off = tg_item_f64(loss) - had[i];
      CHECK(off <= tolerance && off >= -tolerance);
    }
  CHECK(had[5] < had[0]);
  for (int i = 0; i < LAYERS; i++)
    CHECK(tg_item_f64(tg_max(tg_abs(tg_sub(captured.w[i], plain.w[i])))) <= tolerance);
  if (number("HIDDEN")) share = hidden_in(path);
  if (number("HIDDEN") && share < 0.8) fprintf(stderr, "rank %d hides %.3f\n", rank, share), exit(4);
  tg_jit_free(j);
}

/* What a rank tells of its exchanges: the gradients' sums, and that kernels hide most of them. */
static void explains(void) {
  char path[300], line[4000], over[64];
  int sums = 0, hidden = 0;
  snprintf(path, sizeof path, "%s/explain%d", getenv("SAYS"), rank);
  unlink(path); /* of ranks before these */
  setenv("TG_EXPLAIN", path, 1);
  tg_close(C);
  C = tg_open(NULL);
  CHECK(tg_comm_devices(C, NULL, MOST, D) == size);
  snprintf(over, sizeof over, "over %s, %s", D[0], D[1]);
  if (strncmp(D[0], "CPU", 3)) net_sized = 16, tolerance = 1e-6;
  overlaps();
  tg_close(C);
  unsetenv("TG_EXPLAIN");
  FILE *f = fopen(path, "r");
  CHECK(f != NULL);
  while (fgets(line, sizeof line, f)) {
    bool sum = strstr(line, "x ALLREDUCE ADD") && strstr(line, over);
    const char *share = sum ? strstr(line, " % hidden, behind up to ") : NULL;
    sums += sum;
    for (; share && share > line && share[-1] != ' '; share--) {}
    hidden += share && atoi(share) > 0;
  }
  fclose(f);
  C = tg_open(NULL);
  CHECK(tg_comm_devices(C, NULL, MOST, D) == size);
  CHECK(sums && hidden);
}

/* ---- GPUs, emulated, one for each rank */
/* One device stores over what another one takes, and takes nothing of it: it may run ahead. */
static TgStatus taken(TgContext *ctx, TgTensor *const *in, int nin, TgTensor **out, int nout, void *user) {
  (void)nin, (void)nout;
  TgTensor **v = user, *a = v[0], *b = v[1];
  const char *there = tg_device(b);
  TgTensor *made = tg_to(tg_add_scalar(tg_mul_scalar(a, 3), 1), there);
  TgTensor *next = tg_add(tg_add(tg_mul_scalar(b, 2), tg_to(a, there)), made);
  out[0] = tg_add(a, in[0]);
  tg_assign(b, next);
  tg_assign(a, tg_add_scalar(a, 1));
  return tg_error(ctx);
}

/* Replays of which nobody reads anything: what a GPU has still to read of the one before is not overwritten,
 * neither where a copy comes from nor where it goes. */
static void replays_in_a_row(int from) {
  enum { N = 8, RUNS = 6 };

  float want[2][N], got[N];
  TgTensor *v[2], *x = tg_to(tg_cast(tg_arange(C, 0, N), TG_F32), D[from]), *y;
  for (int k = 0; k < 2; k++) {
    v[k] = tg_keep(tg_clone(tg_to(tg_cast(tg_arange(C, k, N + k), TG_F32), D[k ? !from : from])));
    for (int i = 0; i < N; i++)
      want[k][i] = (float)(i + k);
  }
  CHECK(!tg_realize(x));
  TgJit *j = tg_jit(C, taken, v);
  for (int run = 0; run < RUNS; run++) {
    CHECK(!tg_jit_run(j, &x, 1, &y, 1));
    for (int i = 0; i < N; i++) {
      want[1][i] = 2 * want[1][i] + 4 * want[0][i] + 1;
      want[0][i] += 1;
    }
  }
  for (int k = 0; k < 2; k++)
    CHECK(!tg_read(v[k], got, sizeof got) && !memcmp(got, want[k], sizeof got));
  tg_jit_free(j);
}

/* A rank ends, fails or does something else between two replays. */
static void ends_between_replays(void) {
  Net net;
  const char *how = getenv("HOW");
  net_sized = 16;
  net_made(&net);
  TgTensor *x = tg_keep(tg_shard(tg_rand(C, TG_SHAPE(8, net_sized)), size, D, 0));
  CHECK(!tg_realize(x));
  TgJit *j = tg_jit(C, net_step, &net);
  bool ok = true;
  for (int i = 0; ok && i < 8; i++)
    TG_SCOPE(C) {
      TgTensor *loss;
      if (i == 4 && rank == victim && !strcmp(how, "dies")) raise(SIGKILL);
      if (i == 4 && rank == victim && !strcmp(how, "fails")) tg_memory_limit(C, D[rank], 100);
      if (i == 4 && rank == victim && !strcmp(how, "differs"))
        tg_item_f64(tg_sum(tg_to(counted(8, 4), D[victim])));
      ok = !tg_error(C) && !tg_jit_run(j, &x, 1, &loss, 1);
    }
  tg_jit_free(j);
}

static void gpus(void) {
  bool nccl = !strcmp(getenv("TG_COMM"), "nccl");
  NcclMockCounts none = nccl_mock_counts();
  rounds_right(3);
  double sum = 0;
  TgTensor *large = tg_shard(tg_cast(tg_arange(C, 0, 1100000), TG_F32), size, D, 0); /* more than a piece */
  sum = tg_item_f64(tg_max(tg_to(tg_shard_part(tg_mul_scalar(large, 2), 0), D[size - 1])));
  CHECK(sum == 2.0 * ((1100000 + size - 1) / size - 1));
  NcclMockCounts now = nccl_mock_counts();
  if (nccl && size > 1)
    CHECK(now.comms == 1 && now.sends && now.receives && now.groups < now.sends + now.receives);
  else
    CHECK(!memcmp(&now, &none, sizeof now));
  net_sized = 16;
  tolerance = 1e-6;
  for (int from = 0; size > 1 && from < 2; from++)
    replays_in_a_row(from);
  overlaps();
  tg_close(C);
  C = tg_open(NULL);
  CHECK(nccl_mock_counts().comms == 0 && tg_comm_devices(C, NULL, MOST, D) == size);
  rounds_right(1);
}

/* Bytes that this process sent by TCP. */
static uint64_t tcp_bytes(void) {
  uint64_t sum = 0;
#ifdef __linux__
  for (int fd = 0; fd < 256; fd++) {
    struct tcp_info i = {0};
    socklen_t n = sizeof i;
    if (!getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &n)) sum += i.tcpi_bytes_acked;
  }
#endif
  return sum;
}

/* Of ranks that an address brought together NCCL moves all tensors, also those that no GPU has: what all read
 * or one, what comes from a rank to a device without one, memory of hosts, also in a captured function. */
static void by_gpus_alone(void) {
  enum { N = 1 << 18 };

  static float got[N];
  char name[MOST][16];
  const char *host[MOST];
  TgTensor *x = tg_shard(tg_cast(tg_arange(C, 0, N), TG_F32), size, D, 0);
  rounds_right(1);
  uint64_t before = tcp_bytes();
  CHECK(size == 1 || before > 0);
  CHECK(!tg_read(tg_mul_scalar(x, 2), got, sizeof got) && got[N - 1] == 2.f * (N - 1));
  CHECK(!tg_comm_read(x, size - 1, rank == size - 1 ? got : NULL, sizeof got));
  CHECK(got[N / 3] == (float)(N / 3) * (rank == size - 1 ? 1 : 2));
  CHECK(tg_item_f64(tg_max(tg_to(tg_shard_part(x, size - 1), "CUDA"))) == N - 1);
  for (int r = 0; r < size; r++)
    snprintf(name[r], sizeof name[r], "CPU@%d", r), host[r] = name[r];
  TgTensor *y = tg_shard(tg_to(tg_cast(tg_arange(C, 0, N), TG_F32), "CPU"), size, host, 0);
  CHECK(tg_item_f64(tg_max(tg_gather_to(y, host[0]))) == N - 1);
  CHECK(tg_item_f64(tg_sum(tg_sub(tg_gather_to(y, D[size - 1]), tg_gather_to(x, D[size - 1])))) == 0);
  for (int r = 0; r < size; r++)
    D[r] = host[r];
  net_sized = 200;
  tolerance = 1e-6;
  overlaps();
  uint64_t states = (tcp_bytes() - before) / 1024;
  if (states > 300) fprintf(stderr, "rank %d sent %d KiB by TCP\n", rank, (int)states), exit(6);
}

/* ---- what ranks share */
static int64_t over_ranks(int64_t own) {
  int64_t all = 0;
  for (int r = 0; r < size; r++) {
    int64_t of = r == rank ? own : 0;
    CHECK(!tg_comm_max(C, &of));
    all += of;
  }
  return all;
}

static void compiles(void) {
  Net net;
  net_sized = 32;
  net_made(&net);
  TgTensor *x = tg_shard(tg_rand(C, TG_SHAPE(16 * size, net_sized)), size, D, 0), *loss;
  CHECK(!net_step(C, &x, 1, &loss, 1, &net) && tg_item_f64(loss) > 0 && !tg_realize(net.w[0]));
}

/* Which file of an index has a tensor: the rank that wrote it. */
static int file_of(const char *index, const char *name) {
  char key[32], text[4000];
  FILE *f = fopen(index, "r");
  CHECK(f != NULL);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  snprintf(key, sizeof key, "\"%s\": \"", name);
  const char *at = strstr(text, key), *number = at ? strstr(at, "least-") : NULL;
  return number ? atoi(number + 6) - 1 : -1;
}

/* Bytes of a state on each rank's device, as it is split, but for those that rank `writer` has itself. */
static int64_t bytes_elsewhere(TgTensor *t, int writer) {
  int64_t n = 0;
  int of = -1;
  if (tg_shard_count(t) <= 1)
    return sscanf(tg_device(t), "%*[^@]@%d", &of) == 1 && of != writer ? (int64_t)tg_nbytes(t) : 0;
  for (int i = 0; tg_shard_axis(t) >= 0 && i < tg_shard_count(t); i++)
    if (i != writer) n += (int64_t)tg_nbytes(tg_shard_part(t, i));
  return n; /* whole on each: nothing */
}

/* Every byte of a checkpoint leaves its rank once, if another one writes it, and none comes to who does not. */
static void saves_least(void) {
  enum { N = 6 };

  char path[300], name[16];
  TgState *s = tg_state_new(C);
  TgTensor *t[N] = {tg_replicate(counted(31, 17), size, D),
                    tg_shard(counted(29, 16), size, D, 0),
                    tg_shard(counted(16, 27), size, D, 1),
                    tg_to(counted(9, 9), D[size - 1]),
                    counted(12, 5),
                    tg_shard(counted(3, 7), size, D, 0)};
  for (int i = 0; i < N; i++) {
    snprintf(name, sizeof name, "t%d", i);
    CHECK(!tg_realize(t[i]) && !tg_state_put(s, name, t[i]));
  }
  for (int index = 0; index < 2; index++) {
    int64_t least = 0;
    snprintf(path, sizeof path, "%s/least.safetensors%s", getenv("SAYS"), index ? ".index.json" : "");
    tg_counters_reset(C);
    CHECK(!tg_safe_save(s, path));
    int64_t mine = (int64_t)tg_counters(C).bytes_read, all = over_ranks(mine);
    CHECK(!tg_counters(C).bytes_copied && (index || rank == 0 || !mine));
    TgState *file = tg_safe_load_file(C, path);
    for (int i = 0; i < N; i++) {
      snprintf(name, sizeof name, "t%d", i);
      int writer = index ? file_of(path, name) : 0;
      CHECK(writer >= 0);
      least += bytes_elsewhere(t[i], writer);
      CHECK(tg_item_i64(tg_sum(
                tg_ne(tg_to(tg_state_get(file, name), D[0]), tg_to(tg_gather_to(t[i], D[0]), D[0])))) == 0);
    }
    if (all != least)
      fprintf(stderr, "%lld bytes moved, %lld is the least\n", (long long)all, (long long)least), exit(5);
    tg_state_free(file);
  }
  tg_state_free(s);
}

static int items_made;

static TgStatus item(void *user, int64_t i, uint64_t random, void *const *out) {
  (void)user, (void)random;
  *(float *)out[0] = (float)(1 << i);
  items_made++;
  return TG_OK;
}

/* A rank makes its own items, and all together have each once. */
static void loads(void) {
  TgDataset d = {.size = sizeof d, .count = 17, .ntensor = 1, .tensor = {{.dtype = TG_F32}}, .item = item};
  for (int shuffle = 0; shuffle < 2; shuffle++) {
    TgLoader *l = tg_loader(C, &d, .batch = 7, .shuffle = shuffle, .workers = 0, .by_rank = true);
    TgTensor *in;
    double sum = 0;
    items_made = 0;
    for (int b = 0; b < 3; b++) {
      CHECK(tg_loader_next(l, &in));
      sum += tg_item_f64(tg_sum(tg_shard(in, size, D, 0)));
    }
    CHECK(!tg_loader_next(l, &in) && sum == (1 << 17) - 1);
    CHECK(over_ranks(items_made) == 17 && items_made < 17);
    tg_loader_free(l);
  }
}

static int rank_main(const char *role) {
  static const struct {
    const char *name;
    void (*run)(void);
  } roles[] = {{"works", works},
               {"killed", killed},
               {"killed_saving", killed_saving},
               {"hangs", hangs},
               {"leaves", leaves},
               {"fails", fails},
               {"other_shape", other_shape},
               {"other_constant", other_constant},
               {"one_call_more", one_call_more},
               {"rounds", rounds},
               {"two_levels", two_levels},
               {"overlaps", overlaps},
               {"explains", explains},
               {"gpus", gpus},
               {"ends_between_replays", ends_between_replays},
               {"by_gpus_alone", by_gpus_alone},
               {"dies", dies},
               {"compiles", compiles},
               {"saves_least", saves_least},
               {"loads", loads}};

  const char *mine = getenv("TG_COMM_RANK"); /* mpirun does not set it */
  if (!strcmp(role, "two_levels")) setenv("TG_COMM_MACHINE", mine && atoi(mine) < 2 ? "a" : "b", 1);
  C = tg_open(NULL);
  rank = tg_comm_rank(C);
  size = tg_comm_size(C);
  victim = number("VICTIM");
  tg_comm_devices(C, NULL, MOST, D);
  for (size_t i = 0; i < sizeof roles / sizeof *roles && !tg_error(C); i++)
    if (!strcmp(roles[i].name, role)) roles[i].run();
  char path[300];
  snprintf(path, sizeof path, "%s/rank%d", getenv("SAYS"), mine ? atoi(mine) : rank);
  FILE *f = fopen(path, "w");
  if (f) fprintf(f, "%s", tg_errmsg(C)), fclose(f);
  int rc = tg_error(C) ? 1 : 0;
  tg_close(C);
  return rc;
}

/* ==== the test */
static char own[1000], folder[200], shared[260];

static void set(const char *name, int value) {
  char text[32];
  snprintf(text, sizeof text, "%d", value);
  setenv(name, text, 1);
}

/* n processes that do this; the exit code of `tg launch`. */
static int launched(const char *role, int n, int timeout_s) {
  char command[1500];
  int length = snprintf(command, sizeof command,
                        "cd %s && rm -f rank* && ROLE=%s exec " TG_BINARY
                        " launch -n %d --timeout %d --threads 1 %s 2>log",
                        folder, role, n, timeout_s, own);
  assert_true(length < (int)sizeof command);
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *said(const char *file) {
  static char texts[2][4000]; /* two answers at a time */
  static int last;
  char *text = texts[last = !last];
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *f = fopen(path, "r");
  size_t n = f ? fread(text, 1, sizeof *texts - 1, f) : 0;
  if (f) fclose(f);
  text[n] = 0;
  return f ? text : NULL;
}

static const char *said_by(int r) {
  char name[16];
  snprintf(name, sizeof name, "rank%d", r);
  return said(name);
}

static int files_in(const char *path) {
  DIR *d = opendir(path);
  int n = 0;
  for (struct dirent *e; d && (e = readdir(d));)
    n += e->d_name[0] != '.';
  if (d) closedir(d);
  return n;
}

/* Every rank but that one ended with an error that says this of it. */
static void others_say(int n, int of, const char *what) {
  char name[32];
  snprintf(name, sizeof name, "rank %d ", of);
  for (int r = 0; r < n; r++) {
    if (r == of) continue;
    const char *text = said_by(r);
    if (!text || !strstr(text, name) || !strstr(text, what))
      fail_msg("rank %d of %d says \"%s\", not of rank %d that it %s; %s", r, n, text ? text : "nothing", of,
               what, said("log"));
  }
  assert_int_equal(files_in(shared), 0);
}

static void together(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n++) {
    if (launched("works", n, 60)) fail_msg("%d ranks: %s", n, said("log"));
    for (int r = 0; r < n; r++)
      assert_string_equal(said_by(r), "");
    assert_int_equal(files_in(shared), 0);
  }
}

static void fine(const char *role, int n) {
  if (launched(role, n, 60)) fail_msg("%s, %d ranks: %s", role, n, said("log"));
  for (int r = 0; r < n; r++)
    assert_string_equal(said_by(r), "");
}

static void sums_in_two_levels(void **state) {
  (void)state;
  setenv("TG_ALLREDUCE", "4", 1);
  fine("two_levels", 4);
  setenv("TG_ALLREDUCE", "0", 1); /* by cost, where machines are far apart */
  fine("two_levels", 4);
  unsetenv("TG_ALLREDUCE");
}

/* Whatever a message takes, and however a sum is made: the same losses. */
static void exchanges_hide(void **state) {
  (void)state;
  setenv("HIDDEN", "1", 1);
  setenv("TG_COMM_BUCKET", "1", 1);
  fine("overlaps", 2);
  fine("overlaps", 4);
  setenv("HIDDEN", "0", 1);
  fine("explains", 2);
  static const char *const buckets[] = {"0", "100000", "2000000000"};
  for (int i = 0; i < 3; i++) {
    setenv("TG_COMM_BUCKET", buckets[i], 1);
    fine("overlaps", 3);
  }
  unsetenv("TG_COMM_BUCKET");
  setenv("TG_ALLREDUCE", "2", 1);
  fine("overlaps", 3);
  setenv("TG_ALLREDUCE", "3", 1);
  fine("overlaps", 4);
  unsetenv("TG_ALLREDUCE"), unsetenv("HIDDEN");
}

/* NCCL's mock sees order, sizes, streams and groups; the values, and those by the host, are one GPU's. */
static void memory_of_gpus(void **state) {
  (void)state;
  setenv("TG_DEV", "CUDA", 1);
  static const char *const orders[] = {"1", "2", "3", "5"};
  for (int i = 0; i < 4; i++) {
    setenv("TG_EMU", orders[i], 1);
    setenv("TG_COMM", "nccl", 1);
    for (int n = 1; n <= (i ? 2 : 3); n++) {
      set("HIDDEN", n > 1);
      fine("gpus", n);
    }
    set("HIDDEN", 0);
  }
  fine("explains", 2);
  setenv("TG_COMM", "local", 1);
  fine("gpus", 2);
  setenv("TG_DEV", "METAL", 1);
  fine("gpus", 2);
  setenv("TG_COMM", "nccl", 1); /* has no memory that it moves */
  fine("rounds", 2);
  unsetenv("TG_COMM"), unsetenv("TG_DEV"), unsetenv("TG_EMU"), unsetenv("HIDDEN");
}

/* In a captured function too the others end with its name: heads are there before a group begins. */
static void a_rank_ends_between_replays(void **state) {
  (void)state;

  static const struct {
    const char *how, *says;
  } cases[] = {{"dies", "ended"}, {"fails", "@1: cannot allocate"}};

  char command[400];
  setenv("TG_DEV", "CUDA", 1), setenv("TG_EMU", "2", 1), setenv("TG_COMM", "nccl", 1);
  set("VICTIM", 1);
  for (int i = 0; i < 2; i++) {
    setenv("HOW", cases[i].how, 1);
    assert_int_not_equal(launched("ends_between_replays", 3, 30), 0);
    snprintf(command, sizeof command, "rm -rf %s/tg-nccl-*",
             shared); /* the mock's, of a rank that was killed */
    assert_int_equal(system(command), 0);
    others_say(3, 1, cases[i].says);
  }
  setenv("HOW", "differs", 1);
  assert_int_not_equal(launched("ends_between_replays", 2, 10), 0);
  for (int r = 0; r < 2; r++)
    if (!said_by(r) || !strstr(said_by(r), "run different programs")) fail_msg("%s", said_by(r));
  unsetenv("TG_COMM"), unsetenv("TG_DEV"), unsetenv("TG_EMU"), unsetenv("HOW");
}

static void group_fails(const char *path, const char *says) {
  const char *one[1];
  setenv("TG_COMM_NAME", path, 1);
  TgContext *c = tg_open_with(.device = "INTERP");
  assert_int_equal(tg_comm_devices(c, NULL, 1, one), -1);
  assert_int_equal(tg_error(c), TG_ERR_DEVICE);
  if (!strstr(tg_errmsg(c), says)) fail_msg("no \"%s\" in: %s", says, tg_errmsg(c));
  tg_close(c);
}

/* Ranks that a shell starts, the last one first and rank 0 when the others have waited: a file alone brings
 * them together. Who is alone gives up in time, and says whom it waited for. */
static void found_by_file(void **state) {
  (void)state;
  char command[1600], path[260], text[64];
  setenv("TG_COMM", "nccl", 1), setenv("TG_EMU", "2", 1), setenv("TG_COMM_TIMEOUT", "20", 1);
  snprintf(path, sizeof path, "%s/group", folder);
  int length =
      snprintf(command, sizeof command,
               "cd %s && rm -f rank* && export ROLE=gpus TG_DEV=CUDA TG_COMM_NAME=%s TG_COMM_SIZE=2 && "
               "{ TG_COMM_RANK=1 %s 2>log & sleep 0.2; TG_COMM_RANK=0 %s 2>log0; a=$?; wait $! && "
               "exit $a; }",
               folder, path, own, own);
  assert_true(length < (int)sizeof command);
  if (system(command)) fail_msg("%s%s", said("log"), said("log0"));
  for (int r = 0; r < 2; r++)
    assert_string_equal(said_by(r), "");
  assert_int_not_equal(access(path, F_OK), 0); /* its name went when all had come */

  setenv("TG_COMM_TIMEOUT", "1", 1), setenv("TG_COMM_SIZE", "2", 1), setenv("TG_COMM_RANK", "0", 1);
  group_fails(path, "rank 1 does not come");
  assert_int_not_equal(access(path, F_OK), 0);
  setenv("TG_COMM_RANK", "1", 1);
  group_fails(path, "rank 0 does not come");
  snprintf(text, sizeof text, "%.40s/none/group", folder);
  group_fails(text, "cannot be made and mapped: No such file or directory");
  setenv("TG_COMM_RANK", "2", 1);
  group_fails(path, "rank 2 of 2");
  static const char *const names[] = {"TG_COMM",      "TG_EMU",       "TG_COMM_TIMEOUT",
                                      "TG_COMM_SIZE", "TG_COMM_RANK", "TG_COMM_NAME"};
  for (int i = 0; i < 6; i++)
    unsetenv(names[i]);
}

/* ---- ranks that find each other by an address, as on several machines */
static int free_port(void) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof a;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  bool ok =
      fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof a) && !getsockname(fd, (struct sockaddr *)&a, &n);
  if (fd >= 0) close(fd);
  assert_true(ok);
  return ntohs(a.sin_port);
}

/* n processes that a shell starts, the last one first; rank 0 comes when the others have waited. How many of them did
 * not end well. */
static int by_address(const char *role, int n) {
  char command[2600];
  int port = free_port();
  int length = snprintf(
      command, sizeof command,
      "cd %s && rm -f rank* && export ROLE=%s TG_COMM_NAME=127.0.0.1:%d TG_COMM_SIZE=%d TG_THREADS=1 && "
      "for r in $(seq %d -1 0); do [ $r -gt 0 ] || sleep 0.2; TG_COMM_RANK=$r %s 2>>log & p=\"$p $!\"; done; "
      "bad=0; for i in $p; do wait $i || bad=$((bad + 1)); done; exit $bad",
      folder, role, port, n, n - 1, own);
  assert_true(length < (int)sizeof command);
  int status = system(command);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void fine_by_address(const char *role, int n) {
  unlink("log");
  if (by_address(role, n)) fail_msg("%s, %d ranks: %s", role, n, said("log"));
  for (int r = 0; r < n; r++)
    assert_string_equal(said_by(r), "");
}

static int tcp_found(void **state) {
  (void)state;
  char path[300];
  snprintf(path, sizeof path, "%s/libtg_tcp.so", folder);
  setenv("TG_COMM", "nccl", 1), setenv("TG_DEV", "CUDA", 1), setenv("TG_EMU", "2", 1);
  setenv("TG_COMM_TIMEOUT", "60", 1), setenv("LD_LIBRARY_PATH", folder, 1);
  return access(path, F_OK) ? symlink(TG_TCP, path) : 0;
}

static int tcp_left(void **state) {
  (void)state;
  unsetenv("TG_EMU"), unsetenv("TG_DEV"), unsetenv("LD_LIBRARY_PATH");
  unsetenv("TG_COMM"), unsetenv("TG_COMM_TIMEOUT");
  return 0;
}

/* The same as by shared memory: values, ranks that end, fail and differ. NCCL moves all tensors. */
static void found_by_address(void **state) {
  (void)state;
  static const char *const orders[] = {"1", "2", "3", "5"};
  char command[400];
  for (int n = 1; n <= 4; n++) {
    setenv("TG_EMU", orders[n - 1], 1);
    fine_by_address("works", n);
    fine_by_address(n == 2 ? "gpus" : "by_gpus_alone", n < 4 ? n : 2);
  }
  set("VICTIM", 1);

  static const struct {
    const char *role, *says;
    int bad;
  } cases[] = {{"dies", "ended", 3}, {"leaves", "has left", 2}, {"fails", "@1: cannot allocate", 3}};

  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(by_address(cases[i].role, 3), cases[i].bad);
    snprintf(command, sizeof command, "rm -rf %s/tg-nccl-*",
             shared); /* NCCL's mock's, of a rank that was killed */
    assert_int_equal(system(command), 0);
    others_say(3, 1, cases[i].says);
  }
  static const char *const other[] = {"other_shape", "other_constant", "one_call_more"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(by_address(other[i], 2), 2);
    for (int r = 0; r < 2; r++)
      if (!said_by(r) || !strstr(said_by(r), "run different programs"))
        fail_msg("%s: %s", other[i], said_by(r));
  }
}

/* An address alone carries no tensors, nor does NCCL where there is no GPU. */
static void no_tensors_by_address(void **state) {
  (void)state;
  setenv("TG_DEV", "CPU", 1), set("VICTIM", 9);
  assert_int_equal(by_address("killed", 2), 2);
  for (int r = 0; r < 2; r++)
    assert_string_equal(said_by(r), "comm: rank 0 has no GPU for NCCL: take TG_COMM=mpi");
  static const char *const names[] = {"tcp", TG_TCP};
  for (int i = 0; i < 2; i++) {
    setenv("TG_COMM", names[i], 1);
    assert_int_equal(by_address("rounds", 2), 2);
    for (int r = 0; r < 2; r++)
      assert_string_equal(said_by(r), "comm: tcp carries no tensors: TG_COMM is mpi, nccl or local");
  }
}

/* Who speaks to the port and is no rank; says nothing where `text` is NULL. */
static pid_t stranger(int port, const char *text, size_t nbytes) {
  pid_t child = fork();
  if (child) return child;
  struct sockaddr_in a = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = -1;
  for (int i = 0; i < 200; i++) {
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (!connect(fd, (struct sockaddr *)&a, sizeof a)) break;
    close(fd);
    usleep(10000);
  }
  if (text && send(fd, text, nbytes, MSG_NOSIGNAL) < 0) _exit(1);
  sleep(text ? 0 : 30);
  _exit(0);
}

/* A rank that does not find the others by this address, and says why. */
static void alone_by_address(const char *name, const char *r, const char *says) {
  char command[1500];
  setenv("TG_COMM_NAME", name, 1), setenv("TG_COMM_RANK", r, 1);
  snprintf(command, sizeof command, "cd %s && rm -f rank* && ROLE=rounds exec %s 2>log", folder, own);
  assert_int_not_equal(system(command), 0);
  if (!said_by(atoi(r)) || !strstr(said_by(atoi(r)), says))
    fail_msg("no \"%s\" in: %s", says, said_by(atoi(r)));
}

static void nobody_by_address(void **state) {
  (void)state;
  char name[64];
  int port = free_port();
  static const uint32_t wrong_size[] = {0x74676331, 0, 1, 3, 0, 0}; /* a hello of another version */
  snprintf(name, sizeof name, "127.0.0.1:%d", port);
  setenv("TG_COMM_TIMEOUT", "1", 1), setenv("TG_COMM_SIZE", "2", 1);
  alone_by_address(name, "0", "rank 1 does not come");
  pid_t silent = stranger(port, NULL, 0),
        speaks = stranger(port, "GET / HTTP/1.1\r\n\r\n and more of it", 34);
  alone_by_address(name, "0", "rank 1 does not come");
  setenv("TG_COMM_TIMEOUT", "10", 1);
  pid_t other = stranger(port, (const char *)wrong_size, sizeof wrong_size);
  alone_by_address(name, "0", "rank 1 has another TG_COMM_SIZE, or another version");
  const pid_t all[] = {silent, speaks, other};
  for (int i = 0; i < 3; i++) {
    kill(all[i], SIGKILL);
    waitpid(all[i], NULL, 0);
  }
  setenv("TG_COMM_TIMEOUT", "1", 1);
  alone_by_address(name, "1", "rank 0 does not come");
  alone_by_address("192.0.2.1:1", "0", "rank 0 cannot listen"); /* an address that no machine has */
  alone_by_address(":1x", "0", "is no address HOST:PORT");
  alone_by_address("no.such.host.invalid:1", "0", "is no address HOST:PORT");
  alone_by_address(name, "2", "rank 2 of 2");
  unsetenv("TG_COMM_SIZE"), unsetenv("TG_COMM_RANK"), unsetenv("TG_COMM_NAME");
}

/* A compiler that counts its runs, a line of the file runs each. False: there is no compiler here. */
static bool compiler_made(char *path, size_t cap) {
  TgContext *c = tg_open_with(.device = "CPU");
  const char *about = tg_error(c) ? "" : tg_device_describe(c), *cc = strrchr(about, ';');
  snprintf(path, cap, "%s/cc", folder);
  FILE *f = cc ? fopen(path, "w") : NULL;
  if (f) fprintf(f, "#!/bin/sh\necho run >> %s/runs\nexec %s \"$@\"\n", folder, cc + 2);
  bool ok = f && !fclose(f) && !chmod(path, 0700);
  tg_close(c);
  return ok;
}

static int compiler_runs(const char *cache) {
  char path[300];
  snprintf(path, sizeof path, "%s/runs", folder);
  unlink(path);
  setenv("TG_CACHE", cache, 1);
  fine("compiles", 4);
  const char *runs = said("runs");
  return runs ? (int)strlen(runs) / 4 : 0;
}

/* From an empty cache a kernel is compiled by one rank. */
static void work_is_shared(void **state) {
  (void)state;
  fine("loads", 3);
  char cc[300], cache[300], had[3][300];
  const char *names[] = {"TG_CC", "XDG_CACHE_HOME", "TG_CACHE"};
  if (!compiler_made(cc, sizeof cc)) return;
  for (int i = 0; i < 3; i++)
    snprintf(had[i], sizeof had[i], "%s", getenv(names[i]) ? getenv(names[i]) : "");
  snprintf(cache, sizeof cache, "%s/cache", folder);
  setenv("TG_CC", cc, 1), setenv("XDG_CACHE_HOME", cache, 1);
  int alone = compiler_runs("0"), shared_by_all = compiler_runs("1");
  for (int i = 0; i < 3; i++)
    *had[i] ? setenv(names[i], had[i], 1) : unsetenv(names[i]);
  if (shared_by_all < 5 || 3 * shared_by_all > 2 * alone)
    fail_msg("the compiler ran %d times, %d with a cache", alone, shared_by_all);
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* In 50 places: the others end with its name long before the time limit, and nothing is left. */
static void a_rank_is_killed(void **state) {
  (void)state;

  enum { TIMES = 50, LIMIT_S = 60 };

  uint64_t random = 7;
  for (int i = 0; i < TIMES; i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    int n = 2 + i % 3, of = (int)(random >> 33) % n;
    set("VICTIM", of);
    set("AFTER_US", 1 + (int)(random >> 40) % 300000);
    double begin = now_s();
    assert_int_not_equal(launched("killed", n, LIMIT_S), 0);
    assert_true(now_s() - begin < LIMIT_S);
    others_say(n, of, "ended");
  }
}

/* The file is whole whoever is killed while it is written. */
static void a_rank_is_killed_while_it_saves(void **state) {
  (void)state;
  char path[300];
  for (int i = 0; i < 18; i++) { /* then in files of each rank */
    snprintf(path, sizeof path, "%s/saved.safetensors%s", folder, i < 9 ? "" : ".index.json");
    setenv("SAVED", path, 1);
    set("VICTIM", i % 3);
    set("AFTER_US", 1000 + 7919 * (i % 9));
    unlink(path);
    assert_int_not_equal(launched("killed_saving", 3, 60), 0);
    others_say(3, i % 3, "ended");
    TgContext *c = tg_open_with(.device = "INTERP");
    TgState *s = tg_safe_load_file(c, path);
    TgTensor *x = s ? tg_state_get(s, "x") : NULL;
    double last = x ? tg_item_f64(tg_max(tg_add(x, tg_mul_scalar(tg_state_get(s, "zero"), 1e6)))) : -1;
    if (last != 63999) fail_msg("%d: %s", i, tg_errmsg(c));
    tg_state_free(s);
    tg_close(c);
  }
}

static void a_save_moves_the_least(void **state) {
  (void)state;
  for (int n = 1; n <= 4; n++)
    fine("saves_least", n);
}

static void a_rank_does_not_come(void **state) {
  (void)state;
  set("VICTIM", 1);
  assert_int_not_equal(launched("hangs", 3, 2), 0);
  others_say(3, 1, "has not come for 2 s");
  assert_non_null(strstr(said_by(0), "after schedule"));
}

static void a_rank_goes_its_own_way(void **state) {
  (void)state;

  static const struct {
    const char *role, *says;
  } cases[] = {{"leaves", "has left"}, {"fails", "@1: cannot allocate"}};

  set("VICTIM", 1);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_not_equal(launched(cases[i].role, 3, 30), 0);
    others_say(3, 1, cases[i].says);
  }
}

/* Both ranks are named, and nobody took bytes that were not for it. */
static void programs_differ(void **state) {
  (void)state;
  static const char *const roles[] = {"other_shape", "other_constant", "one_call_more"};

  set("VICTIM", 1);
  for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
    assert_int_not_equal(launched(roles[i], 2, 10), 0);
    for (int r = 0; r < 2; r++)
      if (!said_by(r) || !strstr(said_by(r), "run different programs") ||
          !(strstr(said_by(r), "ranks 0 and 1") || strstr(said_by(r), "ranks 1 and 0")))
        fail_msg("%s: rank %d says \"%s\"", roles[i], r, said_by(r));
  }
}

static void no_group(void **state) {
  (void)state;
  TgContext *c = tg_open_with(.device = "INTERP");
  const char *one[1];
  int64_t value = 5;
  assert_int_equal(tg_comm_size(c), 1);
  assert_int_equal(tg_comm_rank(c), 0);
  assert_int_equal(tg_comm_devices(c, NULL, 1, one), 1);
  assert_string_equal(one[0], "INTERP");
  assert_int_equal(tg_comm_max(c, &value), TG_OK);
  assert_int_equal(value, 5);
  assert_int_equal(tg_comm_devices(c, "INTERP@0", 1, one), -1);
  assert_int_equal(tg_error(c), TG_ERR_VALUE);
  tg_clear_error(c);
  assert_null(tg_to(tg_ones(c, TG_SHAPE(2)), "INTERP@0"));
  assert_non_null(strstr(tg_errmsg(c), "TG_COMM is not set"));
  tg_close(c);

  static const struct {
    const char *comm, *says;
  } wrong[] = {{"nothing", "libtg_nothing.so is not found"}, {"local", "TG_COMM_NAME"}};

  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    setenv("TG_COMM", wrong[i].comm, 1);
    c = tg_open_with(.device = "INTERP");
    assert_int_equal(tg_comm_devices(c, NULL, 1, one), -1);
    assert_int_equal(tg_error(c), TG_ERR_DEVICE);
    if (!strstr(tg_errmsg(c), wrong[i].says)) fail_msg("%s", tg_errmsg(c));
    tg_close(c);
  }
  unsetenv("TG_COMM");
}

static int folders_made(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/tg-ranks-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(shared, sizeof shared, "%s/shared", folder);
  setenv("SAYS", folder, 1), setenv("TMPDIR", shared, 1);
  return mkdir(shared, 0700);
}

static int folders_removed(void **state) {
  (void)state;
  char command[300];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

int main(int argc, char **argv) {
  const char *role = getenv("ROLE");
  (void)argc;
  if (role) return rank_main(role);
  ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
  if (n < 0) snprintf(own, sizeof own, "%s", argv[0]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(no_group),
      cmocka_unit_test(together),
      cmocka_unit_test(sums_in_two_levels),
      cmocka_unit_test(exchanges_hide),
      cmocka_unit_test(memory_of_gpus),
      cmocka_unit_test(a_rank_ends_between_replays),
      cmocka_unit_test(found_by_file),
      cmocka_unit_test_setup_teardown(found_by_address, tcp_found, tcp_left),
      cmocka_unit_test_setup_teardown(no_tensors_by_address, tcp_found, tcp_left),
      cmocka_unit_test_setup_teardown(nobody_by_address, tcp_found, tcp_left),
      cmocka_unit_test(work_is_shared),
      cmocka_unit_test(programs_differ),
      cmocka_unit_test(a_rank_goes_its_own_way),
      cmocka_unit_test(a_rank_does_not_come),
      cmocka_unit_test(a_save_moves_the_least),
      cmocka_unit_test(a_rank_is_killed_while_it_saves),
      cmocka_unit_test(a_rank_is_killed),
  };
  if (getenv("TG_TEST")) cmocka_set_test_filter(getenv("TG_TEST")); /* a name, with * */
  return cmocka_run_group_tests(tests, folders_made, folders_removed);
}
