/* test_cli.c: the command `tg` as a user has it: help, exit codes, suggestions, completion, the manual, JSON;
 * training that is interrupted and goes on. The binary is run as a process; what it wrote is compared. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "tests/files/protobuf.h"
#include "tests/json.h"
#include "tests/shell.h"

static char folder[] = "/tmp/tg-cli-XXXXXX";
static const char *device = "INTERP";

/* Runs a shell line in the folder, its stdout and stderr in text; the exit code. */
static int run(const char *form, ...) {
  char line[2000], args[1500];
  va_list ap;
  va_start(ap, form);
  vsnprintf(args, sizeof args, form, ap);
  va_end(ap);
  snprintf(line, sizeof line, "cd %s && export XDG_CACHE_HOME=%s TG_DEV=%s; { %s; } 2>&1", folder, folder,
           device, args);
  return shell_run(line);
}

#define TG "'" TG_BINARY "' "

/* ---- help: the manual names every command and option, and each is in the command's own help */
static void test_help(void **state) {
  (void)state;
  static char all[sizeof text];
  char command[64] = "";
  int commands = 0, options = 0;
  assert_int_equal(run(TG "manual"), 0);
  memcpy(all, text, sizeof all);
  for (char *line = strtok(all, "\n"); line; line = strtok(NULL, "\n")) {
    if (!strncmp(line, ".SS tg ", 7)) {
      snprintf(command, sizeof command, "%s", line + 7);
      assert_int_equal(run(TG "help %s", command), 0);
      char usage[100];
      snprintf(usage, sizeof usage, "usage: tg %s", command);
      says(usage), commands++;
      assert_int_equal(run(TG "%s --help", command), 0);
      says(usage);
    } else if (*command && !strncmp(line, ".B \\-\\-", 7)) {
      char name[64] = "--";
      for (const char *p = line + 7; *p && *p != ' ' && strlen(name) < 60; p++)
        if (*p != '\\') strncat(name, p, 1);
      if (!strstr(text, name)) fail_msg("%s is not in the help of %s", name, command);
      options++;
    }
  }
  assert_true(commands >= 12 && options >= 40);
  assert_int_equal(run(TG "help"), 0), says("train"), says("bench net");
  assert_int_equal(run(TG "--help"), 0);
  assert_int_equal(run(TG "--version"), 0), says("tg ");
  assert_int_equal(run("COLUMNS=50 " TG "help train"), 0);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
    if (strlen(line) > 60) fail_msg("%d columns: %s", (int)strlen(line), line);
}

static void test_wrong_use(void **state) {
  (void)state;
  assert_int_equal(run(TG), 2), says("usage: tg COMMAND");
  assert_int_equal(run(TG "tarin"), 2), says("did you mean 'train'?");
  assert_int_equal(run(TG "xyzzy"), 2), says("tg help lists them");
  assert_int_equal(run(TG "bench"), 2), says("bench lower");
  assert_int_equal(run(TG "bench nett"), 2), says("no 'nett'");
  assert_int_equal(run(TG "demo --setps 3"), 2), says("did you mean --steps?");
  assert_int_equal(run(TG "demo --steps 0"), 2), says("whole number from 1");
  assert_int_equal(run(TG "demo --steps"), 2), says("needs a value");
  assert_int_equal(run(TG "demo --json=1"), 2), says("takes no value");
  assert_int_equal(run(TG "demo more"), 2), says("one argument too many");
  assert_int_equal(run(TG "demo -x"), 2), says("no option -x");
  assert_int_equal(run(TG "source --lang PASCAL softmax"), 2), says("one of C|C99|CUDA|METAL");
  assert_int_equal(run(TG "source softmx"), 2), says("did you mean 'softmax'?");
  assert_int_equal(run(TG "source"), 2), says("PROGRAM.. is missing");
  assert_int_equal(run(TG "train mnist /nonexistent"), 1), says("/nonexistent");
  assert_int_equal(run(TG "train chess ."), 2), says("chargpt");
  assert_int_equal(run(TG "info /nonexistent"), 1);
  assert_int_equal(run(TG "help nothing"), 2);
  assert_int_equal(run(TG "source softmax > /dev/full"), 1); /* what could not be written is no success */
}

static void test_completion(void **state) {
  (void)state;
  static const char *const shells[] = {"bash", "zsh", "fish"};
  for (int i = 0; i < 3; i++) {
    assert_int_equal(
        run(TG "completion %s > completion.%s && cat completion.%s", shells[i], shells[i], shells[i]), 0);
    says("train"), says(i == 2 ? "-l temperature" : "--temperature");
    char check[200];
    snprintf(check, sizeof check, "command -v %s > /dev/null && %s -n completion.%s || true", shells[i],
             shells[i], shells[i]);
    assert_int_equal(run("%s", check), 0);
    if (*text) fail_msg("%s", text);
  }
  assert_int_equal(
      run("bash -c '. ./completion.bash; COMP_WORDS=(tg tra); COMP_CWORD=1; _tg; echo ${COMPREPLY[@]}'"), 0);
  says("train");
  assert_int_equal(run(TG "completion csh"), 2);
}

/* Every line is an object. */
static void json_lines(int least) {
  int n = 0;
  for (const char *p = text; *p; n++) {
    if (*p != '{') fail_msg("no object: %.100s", p);
    const char *end = skip_value(p);
    if (*end != '\n') fail_msg("more than an object: %.100s", end);
    p = end + 1;
  }
  assert_true(n >= least);
}

static void test_json(void **state) {
  (void)state;
  assert_int_equal(run(TG "devices --json"), 0), json_lines(3);
  assert_int_equal(run(TG "devices --links --json"), 0), json_lines(12), says("\"gb_s\"");
  says("\"by\":\"memory\"");
  assert_int_equal(run("TG_EMU=2 TG_DEV=CUDA " TG "devices --links --json"), 0), json_lines(12);
  says("\"from\":\"CUDA\",\"to\":\"CUDA:1\",\"by\":\"peer\"");
  says("\"from\":\"CUDA:3\",\"to\":\"CUDA:2\",\"by\":\"peer\"");
  says("\"from\":\"CUDA:1\",\"to\":\"CUDA:2\",\"by\":\"host\"");
  assert_int_equal(run("TG_EMU=2 TG_DEV=METAL " TG "devices --links"), 0), says(" host "), says("TG_LINKS=");
  assert_int_equal(run(TG "info --json"), 0), json_lines(5);
  assert_int_equal(run(TG "opt --list --json"), 0), json_lines(10), says("\"pass\":\"rangeify\"");
  assert_int_equal(run("printf 'r0 = RANGE[0, LOOP](8)\\nu1 = FLOORMOD(r0, 8)\\n' | " TG
                       "opt --json --pass 'initial symbolic'"),
                   0);
  json_lines(1), says("\"pass\":\"initial symbolic\""), says("\"text\":\"r0 = RANGE[0, LOOP](8)\\u000a\"");
  assert_int_equal(run(TG "source softmax --lang CUDA --json"), 0), json_lines(1);
  says("\"language\":\"CUDA\""), says("\"block\":["), says("\"source\":\"");
  assert_int_equal(run(TG "manual --json"), 0), json_lines(14);
  says("{\"command\":\"run\""), says("{\"option\":\"json\",\"kind\":\"flag\"");
  assert_int_equal(run(TG "completion --json"), 0), json_lines(14);
  says("{\"command\":[\"bench\",\"net\"]"), says("\"--lang\":[\"C\",\"C99\",\"CUDA\",\"METAL\"]");
  assert_int_equal(run(TG "completion bash --json"), 2);
  assert_int_equal(run(TG "manual source --json"), 0), json_lines(1), says("\"value\":\"C|C99|CUDA|METAL\"");
  assert_int_equal(run(TG "info --json '" TG_TESTS "/../LICENSE'"), 1);
}

/* ---- training. A text of few letters: words in an order that can be learnt. */
static void write_text(void) {
  static const char *const words[] = {"the ", "cat ", "sat ", "on ", "a ", "mat\n"};
  char path[100];
  snprintf(path, sizeof path, "%s/input.txt", folder);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  for (int i = 0; i < 1200; i++)
    fputs(words[i * i % 7 % 6], f);
  fclose(f);
}

#define SMALL "--layers 1 --width 32 --context 8 --batch 4 --sample 20 --seed 3 "

static void same_files(const char *a, const char *b) {
  if (run("cmp %s %s", a, b)) fail_msg("%s and %s differ: %s", a, b, text);
}

static void test_train(void **state) {
  (void)state;
  write_text();
  device = "CPU"; /* its kernels are compiled once, and found again by every process */
  assert_int_equal(
      run(TG "train chargpt . " SMALL "--steps 30 --out a.safetensors --log a.jsonl --plot a.svg --json"), 0);
  says("val loss"), says("done  30 steps"), says("saved a.safetensors"), says("\"task\":\"chargpt\"");
  assert_int_equal(run("cat a.jsonl"), 0), json_lines(31);
  assert_int_equal(run("cat a.svg"), 0), says("<polyline"), says("</svg>");
  assert_int_equal(run(TG "info a.safetensors"), 0), says("h.0.attn.c_attn.weight"), says("wte.weight");
  /* a checkpoint in the middle, and on from there: the same bits */
  assert_int_equal(
      run(TG "train chargpt . " SMALL "--steps 30 --every 17 --out b.safetensors --checkpoint c"), 0);
  same_files("a.safetensors", "b.safetensors");
  assert_int_equal(run(TG "train chargpt . --sample 0 --resume --checkpoint c --out d.safetensors"), 0);
  says("resumed"), says("done  13 steps");
  same_files("a.safetensors", "d.safetensors");
  assert_int_equal(
      run(TG "train chargpt . " SMALL "--lr 100 --decay 10 --steps 400 --log nan --out e.safetensors"), 1);
  says("a lower --lr may help"), assert_int_equal(run("tail -n 3 nan"), 0), json_lines(3),
      says("\"loss\":null");
  assert_int_equal(run(TG "train chargpt . --resume --checkpoint a.safetensors"), 1); /* weights alone */
  assert_int_equal(run(TG "train mnist . --resume --checkpoint c"), 1), says("no checkpoint of mnist");
}

/* ---- several devices share each batch: the losses are those of one, within rounding */
static int losses_of(const char *file, double *loss, int most) {
  int n = 0;
  assert_int_equal(run("cat %s", file), 0);
  for (const char *at = text; n < most && (at = strstr(at, "\"loss\":")) != NULL; at++)
    loss[n++] = atof(at + strlen("\"loss\":"));
  return n;
}

static void same_losses(const char *a, const char *b) {
  double x[64], y[64];
  int n = losses_of(a, x, 64), m = losses_of(b, y, 64);
  if (!n || n != m) fail_msg("%s has %d losses, %s %d", a, n, b, m);
  for (int i = 0; i < n; i++)
    if (!(fabs(x[i] - y[i]) <= 1e-5 * (1 + fabs(x[i]))))
      fail_msg("%s, loss %d: %.9g, not %.9g", b, i, y[i], x[i]);
}

/* Pictures that are stripes, and what stripe it is: idx files. */
static void write_digits(const char *name, int n) {
  char path[200];
  for (int labels = 0; labels < 2; labels++) {
    snprintf(path, sizeof path, "%s/%s-%s-ubyte", folder, name, labels ? "labels-idx1" : "images-idx3");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    const unsigned char head[] = {
        0, 0, 8, labels ? 1 : 3, 0, 0, (unsigned char)(n >> 8), (unsigned char)n, 0, 0, 0, 28, 0, 0, 0, 28};
    fwrite(head, 1, labels ? 8 : 16, f);
    for (int i = 0; i < n; i++)
      for (int k = 0; k < (labels ? 1 : 28 * 28); k++)
        fputc(labels ? i % 10 : k / 28 / 3 == i % 10 ? 200 + i % 50 : (k * 7 + i) % 40, f);
    fclose(f);
  }
}

/* Each device in a process of its own. */
static void test_train_ranks(void **state) {
  (void)state;
  write_text();
  write_digits("train", 60), write_digits("t10k", 20);
  device = "CPU";
  assert_int_equal(run(TG "train chargpt . " SMALL "--steps 12 --log g1 --out g.safetensors"), 0);
  assert_int_equal(run(TG "train mnist . --batch 20 --steps 6 --log m1 --out m.safetensors"), 0);
  for (int n = 2; n <= 4; n *= 2) {
    assert_int_equal(run(TG "launch -n %d " TG "train chargpt . " SMALL
                            "--steps 12 --log g%d --every 7 --checkpoint s%d%s --out g.safetensors",
                         n, n, n, n == 4 ? ".index.json" : ""),
                     0);
    assert_int_equal(
        run(TG "launch -n %d " TG "train mnist . --batch 20 --steps 6 --log m%d --out m.safetensors", n, n),
        0);
    char file[8];
    snprintf(file, sizeof file, "g%d", n), same_losses("g1", file);
    snprintf(file, sizeof file, "m%d", n), same_losses("m1", file);
  }
  /* a checkpoint of four ranks, with a file of each, goes on with two, and alone */
  assert_int_equal(run("test -f s4-00004-of-00004.safetensors"), 0);
  assert_int_equal(run(TG "launch -n 2 " TG
                          "train chargpt . --resume --checkpoint s4.index.json --log r2 --out g.safetensors"),
                   0);
  assert_int_equal(run(TG "train chargpt . --resume --checkpoint s4.index.json --log r1 --out g.safetensors"),
                   0);
  same_losses("r1", "r2");
  assert_int_equal(run("head -12 g1 | tail -5 > tail; head -5 r1 > begin"), 0);
  same_losses("tail", "begin");
  assert_int_equal(run(TG "launch -n 2 " TG "train chargpt . " SMALL "--steps 2 --devices 2"), 1);
  says("each rank has one device");
  assert_int_equal(run(TG "launch"), 2), says("is missing");
  assert_int_equal(run(TG "launch -n 2 /nonexistent/program"), 127), says("/nonexistent/program");
  assert_int_equal(run(TG "launch -n 3 sh -c 'exit 7'"), 7);
}

static void test_train_devices(void **state) {
  (void)state;
  write_text();
  write_digits("train", 60), write_digits("t10k", 20);
  device = "CPU";
  for (int n = 1; n <= 4; n *= 2) {
    assert_int_equal(
        run(TG "train chargpt . " SMALL "--steps 12 --devices %d --log g%d --out g.safetensors", n, n), 0);
    assert_int_equal(
        run(TG "train mnist . --batch 20 --steps 6 --devices %d --log m%d --out m.safetensors", n, n), 0);
    char file[8];
    snprintf(file, sizeof file, "g%d", n), same_losses("g1", file);
    snprintf(file, sizeof file, "m%d", n), same_losses("m1", file);
  }
  /* the state in parts; a checkpoint of four goes on with two, and with one */
  assert_int_equal(run(TG "train chargpt . " SMALL "--steps 12 --devices 4 --split-state --log gs --every 7 "
                          "--checkpoint s4 --out g.safetensors"),
                   0);
  same_losses("g1", "gs");
  for (int n = 1; n <= 2; n++) {
    assert_int_equal(
        run(TG "train chargpt . --resume --checkpoint s4 --devices %d --log r%d --out g.safetensors", n, n),
        0);
    says("resumed");
  }
  same_losses("r1", "r2");
  assert_int_equal(run("head -12 g1 | tail -5 > tail; head -5 r1 > begin"), 0);
  same_losses("tail", "begin");
  assert_int_equal(run(TG "train chargpt . " SMALL "--steps 2 --devices 8"), 1), says("less than --devices");
}

/* What each device sends is the least, 2 (n-1)/n of the gradients; a step takes what is computed and what of
 * the exchange nothing hides. */
static void test_plan(void **state) {
  (void)state;
  static const char *const of[] = {"8xH100 --link nvlink", "64xA100 --link ethernet --split-state", "1xH200",
                                   "64xH100 --machines 8 --link infiniband"};
  for (int i = 0; i < 4; i++) {
    assert_int_equal(run(TG "plan --json --devices %s", of[i]), 0);
    const char *at = text;
    for (int k = 0; k < 5; k++) {
      double step, compute, exchange, hidden, sent, least;
      at = strstr(at, "\"step_ms\"");
      int n =
          sscanf(at,
                 "\"step_ms\":%lf,\"compute_ms\":%lf,\"exchange_ms\":%lf,\"hidden\":%lf,\"sent_bytes\":%lf,"
                 "\"least_bytes\":%lf",
                 &step, &compute, &exchange, &hidden, &sent, &least);
      assert_int_equal(n, 6);
      assert_true(fabs(sent - least) <= 1e-9 * least + 1 && hidden >= 0 && hidden <= 1);
      assert_true(step > compute + (1 - hidden) * exchange - 1e-3);
      if (i == 0 || i == 3) assert_true(hidden >= 0.8);
      at++;
    }
  }
  assert_int_equal(run(TG "plan"), 0), says("8 x H100, nvlink at 369 GB/s"), says("more than it has");
  assert_int_equal(run(TG "plan --devices 8xB9"), 2), says("8xH100");
  assert_int_equal(run(TG "plan --machines 3"), 2), says("8 devices are not as many on each of 3 machines");
  assert_int_equal(run(TG "plan --link rope"), 2), says("infiniband");
}

/* In bf16 it learns as in f32: the loss falls as far, and the bits of a run go on after a checkpoint. */
static void test_bf16(void **state) {
  (void)state;
  double loss[2];
  write_text();
  device = "CPU";
  for (int narrow = 0; narrow < 2; narrow++) {
    assert_int_equal(run(TG "train chargpt . " SMALL "--steps 60 --sample 0 --json --out %s %s",
                         narrow ? "n.safetensors --bf16" : "w.safetensors", narrow ? "--log n.jsonl" : ""),
                     0);
    const char *at = strstr(text, "\"train_loss\":");
    assert_non_null(at);
    loss[narrow] = atof(at + strlen("\"train_loss\":"));
  }
  assert_int_equal(run("head -1 n.jsonl"), 0);
  double first = atof(strstr(text, "\"loss\":") + strlen("\"loss\":"));
  if (!(loss[1] < 0.9 * first && fabs(loss[1] - loss[0]) < 0.05 * loss[0]))
    fail_msg("bf16: %g from %g, f32: %g", loss[1], first, loss[0]);
  assert_int_equal(run(TG "info n.safetensors"), 0), says("bf16");
  assert_int_equal(run(TG "train chargpt . " SMALL "--steps 30 --bf16 --sample 0 --out e.safetensors"), 0);
  says("bf16"),
      assert_int_equal(run(TG "train chargpt . " SMALL
                              "--steps 30 --bf16 --sample 0 --every 17 --out f.safetensors --checkpoint l"),
                       0);
  same_files("e.safetensors", "f.safetensors");
  assert_int_equal(run(TG "train chargpt . --sample 0 --resume --checkpoint l --out g.safetensors"), 0);
  says("bf16  resumed"), same_files("e.safetensors", "g.safetensors");
}

/* Interrupted once its log has so many steps, and again: what it ends with is the unbroken run's. A turn that
 * is over before it has them ends as the last one does. */
static void test_interrupted(void **state) {
  (void)state;
  assert_int_equal(run(TG "train chargpt . " SMALL "--steps 2000 --sample 0 --out u.safetensors"), 0);
  const char *more = SMALL "--steps 2000";
  int breaks = 0, code = 130;
  for (int i = 0; code == 130 && i < 6; i++) {
    code = run(TG "train chargpt . %s --sample 0 --checkpoint k --out v.safetensors --log l%d & p=$!; "
                  "for n in $(seq 2000); do [ -f v.safetensors ] && break; "
                  "[ -f l%d ] && [ $(wc -l < l%d) -ge %d ] && break; sleep 0.02; done; "
                  "kill -INT $p 2>/dev/null; wait $p",
               more, i, i, i, 1 + 40 * i);
    if (code == 130)
      breaks++, says("checkpoint written"), more = "--resume";
    else if (code)
      fail_msg("%d: %s", code, text);
  }
  if (code == 130)
    assert_int_equal(run(TG "train chargpt . --sample 0 --resume --checkpoint k --out v.safetensors"), 0);
  assert_true(breaks >= 1);
  same_files("u.safetensors", "v.safetensors");
}

/* ---- models, where the data is on this machine */
static const char *data(const char *name, char room[600]) {
  const char *own = getenv("TG_DATA");
  char at[500], *whole = realpath(own && *own ? own : "../shared/data", NULL);
  snprintf(at, sizeof at, "%s", whole ? whole : "");
  free(whole);
  snprintf(room, 600, "%s/%s", at, name);
  if (!access(room, R_OK)) return room;
  print_message("skipped: no %s in the shared data\n", name);
  return NULL;
}

/* Whether the program was built without a library, as it says itself. */
static bool built_without(int code, const char *library) {
  char words[64];
  snprintf(words, sizeof words, "without %s", library);
  if (!code || !strstr(text, words)) return false;
  print_message("skipped: built %s\n", words);
  return true;
}

static void file_write(const char *name, const void *p, size_t n) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(p, 1, n, f), n);
  fclose(f);
}

/* y = Frobnicate(Relu(Relu(x))), or another function last, x (batch, 3) */
static void model_write(const char *name, const char *last) {
  const char *op[] = {"Relu", "Relu", last}, *value[] = {"x", "a", "b", "y"};
  Msg g = {0}, m = {0}, set = {0};
  for (int i = 0; i < 3; i++) {
    Msg n = {0};
    put_text(&n, 1, value[i]), put_text(&n, 2, value[i + 1]), put_text(&n, 4, op[i]);
    put_text(&n, 3, i == 2 ? "the odd one" : "");
    put(&g, 1, &n);
  }
  for (int i = 0; i < 2; i++) {
    Msg batch = {0}, three = {0}, shape = {0}, tensor = {0}, type = {0}, v = {0};
    put_text(&batch, 2, "batch"), put_int(&three, 1, 3), put(&shape, 1, &batch), put(&shape, 1, &three);
    put_int(&tensor, 1, 1), put(&tensor, 2, &shape), put(&type, 1, &tensor);
    put_text(&v, 1, i ? "y" : "x"), put(&v, 2, &type), put(&g, i ? 12 : 11, &v);
  }
  put_int(&set, 2, 17), put_int(&m, 1, 8), put(&m, 7, &g), put(&m, 8, &set);
  file_write(name, m.b, m.n);
}

/* What a file is, of whatever kind, and what to do with one that cannot be run. */
static void test_info_files(void **state) {
  (void)state;
  device = "INTERP";
  model_write("odd.onnx", "Frobnicate");
  assert_int_equal(run(TG "info odd.onnx"), 0);
  says("ONNX"), says("3 nodes"), says("opset   17 of ai.onnx"), says("(batch, 3)");
  says("      2 Relu"), says("      1 Frobnicate  not implemented: node the odd one");
  assert_int_equal(run(TG "info odd.onnx --json"), 0), json_lines(6);
  says("{\"operator\":\"Frobnicate\",\"domain\":\"ai.onnx\",\"count\":1,\"implemented\":false");
  says("\"shape\":[\"batch\", 3]");
  assert_int_equal(run(TG "run odd.onnx"), 1), says("op Frobnicate of the domain ai.onnx");
  static const uint8_t idx[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
  file_write("i.idx", idx, sizeof idx);
  assert_int_equal(run(TG "info i.idx"), 0), says("i.idx: idx"), says("(2, 3)");
  assert_int_equal(run("gzip -k i.idx && " TG "info i.idx.gz --json"), 0), json_lines(2),
      says("\"shape\":[2, 3]");
  assert_int_equal(run("tar --format=ustar -cf i.tar i.idx && " TG "info i.tar"), 0);
  says("tar, 1 tensors"), says("i.idx"), says("(18,)");
  assert_int_equal(run(TG "run i.tar"), 1), says("an archive");
  assert_int_equal(run("printf GGUF > w.gguf; " TG "run w.gguf"), 1), says("a gguf file: --prompt TEXT");
  assert_int_equal(run(TG "info /nonexistent"), 1), says("cannot read");
  assert_int_equal(run(TG "info ."), 1), says("cannot read .: Is a directory");
  assert_int_equal(run(TG "info '" TG_TESTS "/goldens/llm/hf/llama'"), 0), says("model folder, "),
      says("blk.0.attn_q.weight"), says("general.architecture"), says("\"llama\"");
  assert_int_equal(run("mkdir f; echo '{}' > f/config.json; " TG "info f"), 1),
      says("config.json: model_type '' is not read here");
  char a[600];
  if (!data("npz/stored.npz", a)) skip();
  assert_int_equal(run(TG "info %s", a), 0), says("npz, 2 tensors"), says("a.npy"), says("(2, 3, 4)");
  data("npz/deflated.npz", a);
  assert_int_equal(run(TG "info %s", a), 0), says("of a type that is not read here");
  data("npz/fortran_f4.npy", a);
  assert_int_equal(run(TG "info %s", a), 0), says("npy"), says("f32");
  assert_int_equal(run(TG "run %s", a), 1), says("an array, which is an input");
}

/* What is no language model is refused alike by all commands that take one: with its own name in front, by
 * what is wrong with the file, once. */
static void refused_models(void) {
  static const struct {
    const char *path, *why;
  } file[] = {{"nothing.gguf", "nothing.gguf: No such file or directory"},
              {"no_model", "no_model/config.json: No such file or directory"},
              {"text.gguf", "text.gguf: no gguf file"},
              {"cut.gguf", "cut.gguf"}};

  static const struct {
    const char *name, *line;
  } command[] = {{"chat", "chat %s"},
                 {"run", "run --prompt x %s"},
                 {"serve", "serve --port 0 %s"},
                 {"bench llm", "bench llm %s"},
                 {"embed", "embed %s x"},
                 {"merge", "merge %s x -o y"},
                 {"train lora", "train lora %s --data x"}};

  assert_int_equal(run("mkdir no_model; echo text > text.gguf; printf GGUF > cut.gguf"), 0);
  for (size_t f = 0; f < sizeof file / sizeof *file; f++)
    for (size_t c = 0; c < sizeof command / sizeof *command; c++) {
      char line[100], says_first[40];
      snprintf(line, sizeof line, command[c].line, file[f].path);
      snprintf(says_first, sizeof says_first, "tg %s: ", command[c].name);
      assert_int_equal(run(TG "%s", line), 1), says(file[f].why);
      assert_memory_equal(text, says_first, strlen(says_first));
      assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
    }
}

/* Types keys at a shell line that runs in the folder on a terminal of its own; what the terminal shows is in
 * text, the exit code is returned. Each 0x01 among the keys waits for a prompt. It is -1 where the machine
 * has no terminal to give, as in some containers. */
static int types(const char *keys, size_t nkeys, const char *line) {
  int terminal = posix_openpt(O_RDWR | O_NOCTTY), status = -1, other = -1;
  if (terminal < 0) return -1;
  (void)grantpt(terminal); /* what counts is that the other side opens */
  if (!unlockpt(terminal) && ptsname(terminal)) other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  if (other < 0) {
    close(terminal);
    return -1;
  }
  pid_t child = fork();
  if (!child) {
    setsid();
    int in = open(ptsname(terminal), O_RDWR);
    dup2(in, 0), dup2(in, 1), dup2(in, 2);
    if (in < 0 || chdir(folder)) _exit(126);
    close(other), close(terminal);
    execl("/bin/sh", "sh", "-c", line, (char *)NULL);
    _exit(127);
  }
  close(other);
  size_t n = 0, key = 0, shown = 0;
  for (ssize_t k; n + 1 < sizeof text && (k = read(terminal, text + n, sizeof text - 1 - n)) > 0;) {
    text[n += (size_t)k] = 0;
    const char *prompt = strstr(text + shown, ">>> ");
    if (!prompt) continue;
    shown = (size_t)(prompt + 4 - text);
    size_t next = key;
    while (next < nkeys && keys[next] != 1)
      next++;
    if (next > key) assert_int_equal(write(terminal, keys + key, next - key), next - key);
    key = next + 1 < nkeys ? next + 1 : nkeys;
  }
  close(terminal);
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* What is typed at a terminal arrives, whatever the locale; a byte that no text has is not cut away. */
static void typed(const char *m) {
  static const char *const locales[] = {"LC_ALL=C", "LC_ALL=C.UTF-8", "LC_ALL=en_US.ISO-8859-1",
                                        "LANG=nothing"};
  static const char keys[] =
      "caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x99\x82\n\x01/save said\n\x01/bye\n";
  char line[1200];
  for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
    snprintf(line, sizeof line,
             "unset LC_ALL LC_CTYPE LANG; rm -f said; TERM=xterm XDG_CACHE_HOME=%s TG_DEV=CPU %s " TG
             "chat %s --temperature 0 --tokens 2",
             folder, locales[i], m);
    int code = types(keys, sizeof keys - 1, line);
    if (code < 0) {
      print_message("skipped what is typed: this machine gives no terminal\n");
      return;
    }
    assert_int_equal(code, 0);
    assert_int_equal(run("cat said"), 0), says("\"caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x99\x82\"");
  }
}

/* A language model: a pipe, a completion, stop texts that span tokens, wrong use, rates. */
static void test_chat(void **state) {
  (void)state;
  char m[600];
  device = "CPU";
  refused_models();
  assert_int_equal(run("printf GGUF > w.gguf; " TG "chat w.gguf"), 1), says("w.gguf");
  assert_int_equal(run(TG "run w.gguf --prompt x y"), 2), says("no INPUT");
  assert_int_equal(run(TG "run w.gguf --top-k 4"), 2), says("--top-k means nothing without --prompt");
  assert_int_equal(run(TG "explain ./w.gguf"), 1), says("is a language model"), says("-- tg run ./w.gguf");
  assert_int_equal(run(TG "info /dev/zero"), 1), says("File too large");
  assert_int_equal(run(TG "help bench"), 0), says("bench lower");
  if (!data("stories260K/stories260K-f32.gguf", m)) skip();
  assert_int_equal(run("echo Once upon a time | " TG "chat %s --temperature 0 --tokens 14", m), 0);
  says(", there was a little girl named Lily. She loved");
  assert_int_equal(run(TG "run %s --prompt 'Once upon a time' --temperature 0 --tokens 14", m), 0);
  says(", there was a little girl named Lily. She loved"), says("[prompt 5 tok"), says("context 18/512]");
  assert_int_equal(run("printf 'Once\\000 upon' | " TG "chat %s --tokens 2", m), 1), says("stdin: a 0 byte");
  run("printf 'root ::= \"a\"' > g; printf 'root ::= \"a\"\\000b' > g0");
  run("echo '{\"type\": \"null\"}' > s; printf 'true\\000 x' > s0");
  const char *form = "echo a | " TG "chat %s %s --tokens 4";
  assert_int_equal(run(form, m, "--grammar g"), 0), says("a\n");
  assert_int_equal(run(form, m, "--schema s"), 0), says("null");
  assert_int_equal(run(form, m, "--grammar g0"), 1);
  assert_int_equal(run(form, m, "--schema s0"), 1);
  assert_int_equal(run(form, m, "--grammar g --schema s"), 2), says("cannot both be");
  typed(m);
  const char *pipe =
      "echo Once upon a time | " TG "chat %s --temperature 0 --stop 'Lily. She' --stop xyz > o && cat o";
  assert_int_equal(run(pipe, m), 0), says(", there was a little girl named \n");
  assert_int_equal(run("echo a | " TG "chat %s --seed 5 --tokens 40 > p; echo a | " TG
                       "chat %s --seed 5 --tokens 40 --cache f16 --context 64 > q; cat p q",
                       m, m),
                   0);
  assert_int_equal(run(TG "bench llm %s --prompt 20 --generate 4 --runs 1 --json", m), 0), json_lines(2);
  says("\"test\":\"pp20\""), says("\"test\":\"tg4\"");
  assert_int_equal(run(TG "bench llm %s --prompt 0 --generate 4 --sequences 3 --runs 1 --json", m), 0),
      json_lines(2);
  says("\"test\":\"tg4\""), says("\"test\":\"tg4x3\"");
  assert_int_equal(run(TG "bench llm %s --generate 9999", m), 1);
  says("9999 tokens are more than the context of "); /* before anything is timed */
}

/* A conversation in a terminal with a model that reads pictures. more: further options. Returns whether the
 * machine has a terminal to give. */
static bool shown(const char *keys, size_t n, const char *more) {
  char line[2000];
  const char *at = TG_TESTS "/goldens/llm/vision/idefics3";
  snprintf(line, sizeof line,
           "TERM=xterm XDG_CACHE_HOME=%s TG_DEV=CPU " TG "chat %s.gguf --temperature 0 --tokens 5 %s 2>&1",
           folder, at, more);
  int code = types(keys, n, line);
  if (code < 0) print_message("skipped what is typed: this machine gives no terminal\n");
  if (code > 0) fail_msg("exit code %d: %s", code, text);
  return code == 0;
}

/* A conversation with pictures goes on after /load as if it had never ended. */
static void test_chat_pictures(void **state) {
  (void)state;
  device = "CPU";
  char sees[700];
  snprintf(sees, sizeof sees, "--mmproj %s/goldens/llm/vision/idefics3-mmproj.gguf", TG_TESTS);
  run("printf 'P6\\n4 3\\n255\\nabcdefghijklmnopqrstuvwxyzABCDEFGHIJ' > a.ppm; printf 'P6\\n1 1\\n255\\nzzz' "
      "> b.ppm");
  static const char first[] =
      "/picture a.ppm\n\1abc\n\1/save s1\n\1/picture b.ppm\n\1/picture a.ppm\n\1de\n\1/save s2\n\1/bye\n";
  if (!shown(first, sizeof first - 1, sees)) return;
  says("a.ppm: 4 x 3 pixels, 4 tokens");
  assert_int_equal(run("cat s1"), 0),
      says("\"url\": \"data:image/x-portable-pixmap;base64,UDYKNCAzCjI1NQphYmNk");
  static const char again[] =
      "/load s1\n\1/picture b.ppm\n\1/picture a.ppm\n\1de\n\1/save s3\n\1/load s3\n\1/save s4\n\1/bye\n";
  assert_true(shown(again, sizeof again - 1, sees)), says("2 messages of s1");
  same_files("s2", "s3"), same_files("s3", "s4");

  /* what cannot be loaded changes nothing */
  static const char blind[] = "ab\n\1/save s5\n\1/load s1\n\1/save s6\n\1/bye\n";
  assert_true(shown(blind, sizeof blind - 1, "")), says("s1: it has pictures, which want --mmproj"),
      same_files("s5", "s6");
  run("sed 's/base64,UDYK/base64,AAAA/' s2 > bad; sed 's/\"type\": \"image_url\", \"image_url\"/\"other\"/' "
      "s2 > odd; sed 's/\"user\"/5/' s2 > role");
  run("{ printf '{\"messages\": [{\"role\": \"user\", \"content\": ['; for i in $(seq 17); do printf "
      "'{\"image_url\": \"data:image/x;base64,UDYKMSAxCjI1NQp6eno=\"}, '; done; echo '{\"text\": "
      "\"a\"}]}]}'; } > many");
  static const char wrong[] = "/picture a.ppm\n\1abc\n\1/save s5\n\1/load bad\n\1/load odd\n\1/load "
                              "role\n\1/load many\n\1/load a.ppm\n\1"
                              "/load nothing\n\1/save s6\n\1/bye\n";
  assert_true(shown(wrong, sizeof wrong - 1, sees));
  says("bad: neither PNG nor JPEG nor PPM"), says("odd: a content has a part that is neither"),
      says("role: no list of messages");
  says("many: it has more pictures than a prompt");
  same_files("s5", "s6");

  /* tiles */
  char tiles[800];
  snprintf(tiles, sizeof tiles, "%s --tiles 4", sees);
  static const char cut[] = "/picture a.ppm\n\1abc\n\1/save s7\n\1/bye\n";
  assert_true(shown(cut, sizeof cut - 1, tiles)),
      says("a.ppm: 4 x 3 pixels, 4 tiles and the whole picture, 20 tokens");
}

/* Texts as vectors: of arguments and of lines the same, and what an encoder does not do. */
static void test_embed(void **state) {
  (void)state;
  device = "CPU";
  const char *bert = TG_TESTS "/goldens/llm/hf/bert", *rank = TG_TESTS "/goldens/llm/hf/bert-rank";
  assert_int_equal(run(TG "embed %s 'a dog' 'The cat sat' a > e1", bert), 0);
  assert_int_equal(run("printf 'a dog\\nThe cat sat\\na' | " TG "embed %s > e2; wc -l < e2", bert), 0),
      says("3");
  same_files("e1", "e2");
  assert_int_equal(run(TG "embed %s --pooling mean a > e2; cmp e1 e2", bert), 1);
  assert_int_equal(run(TG "embed %s --pooling max a", bert), 2), says("--pooling");
  assert_int_equal(run(TG "embed %s a", rank), 1), says("the model is a reranker");
  assert_int_equal(run("yes a | head -100 | tr '\\n' ' ' | " TG "embed %s", bert), 1);
  says("102 tokens are more than the context of 64");
  assert_int_equal(run("echo a | " TG "chat %s", bert), 1);
  says("bert is an encoder and generates nothing: tg embed makes embeddings");
  assert_int_equal(run(TG "run %s --prompt a", rank), 1), says("tg serve ranks texts with it (/v1/rerank)");
  assert_int_equal(run(TG "bench llm %s", bert), 1), says("generates nothing");
  assert_int_equal(run(TG "train lora %s --data e1", bert), 1), says("bert is an encoder: it has embeddings");
}

/* An adapter that is learned, goes on after a checkpoint to the same bits, changes replies, and is merged. */
static void test_adapter(void **state) {
  (void)state;
  char m[600];
  device = "CPU";
  assert_int_equal(run(TG "train lora nothing.gguf"), 2), says("--data FILE");
  if (!data("stories260K/stories260K-q8_0.gguf", m)) skip();
  run("for i in 1 2 3 4 5 6 7; do echo '{\"prompt\": \"Once upon a time\", \"completion\": \" the cat "
      "sat\"}'; done > t");
  const char *learn =
      TG "train lora %s --data t --length 12 --steps 40 --lr 0.02 --dropout 0.1 --modules all --rank 4 "
         "--checkpoint-every 17 --checkpoint lc -o one/ --log ll --json";
  assert_int_equal(run(learn, m), 0);
  says("7 pieces of text"), says("done  40 steps"), says("saved one/"), says("\"first_loss\":");
  assert_int_equal(run("cat ll"), 0), json_lines(40);
  assert_int_equal(run("cat one/adapter_config.json"), 0), says("\"target_modules\""), says("\"gate_proj\"");
  assert_int_equal(run(TG "train lora %s --data t --resume --checkpoint lc -o two.safetensors", m), 0);
  says("resumed"), says("done  6 steps");
  same_files("one/adapter_model.safetensors", "two.safetensors");
  assert_int_equal(run("echo a > u; " TG "train lora %s --data u --resume --checkpoint lc", m), 1);
  says("was made with 7 pieces of text");
  assert_int_equal(run(TG "train lora %s --data t --resume --checkpoint two.safetensors", m), 1);
  says("no checkpoint of a low-rank adapter");
  const char *say = TG "run %s --prompt 'Once upon a time' --temperature 0 --tokens 8 %s";
  assert_int_equal(run(say, m, "--lora one"), 0), says(" the cat sat");
  assert_int_equal(run(say, m, "--lora two.safetensors=0"), 0), says(", there was");
  assert_int_equal(run(say, m, "--lora one/=0.5 --lora two.safetensors=0.5"), 0), says(" the cat sat");
  assert_int_equal(run("echo Once upon a time | " TG "chat %s --lora one --temperature 0 --tokens 8", m), 0);
  says(" the cat sat");
  assert_int_equal(run(TG "bench llm %s --lora one --prompt 4 --generate 2 --runs 1 --json", m), 0),
      json_lines(2);
  assert_int_equal(run(say, m, "--lora nothing"), 1), says("nothing/adapter_config.json");
  assert_int_equal(run(TG "merge %s one", m), 2), says("-o FILE");
  assert_int_equal(run(TG "merge %s one -o whole.gguf", m), 0), says("35 weights changed");
  assert_int_equal(run(say, "whole.gguf", ""), 0), says(" the cat sat");
  assert_int_equal(run(TG "merge whole.gguf one -o whole.gguf", m), 1), says("own file");
}

/* All weights are learned, and go on after a checkpoint to the same file. */
static void test_full(void **state) {
  (void)state;
  char m[600];
  device = "CPU";
  assert_int_equal(run(TG "train lora %s --data t --full", "x.gguf"), 1);
  if (!data("stories260K/stories260K-f32.gguf", m)) skip();
  assert_int_equal(run(TG "train lora %s --data t --full", m), 2), says("--full wants -o NEW.gguf");
  run("for i in 1 2 3 4 5; do echo '{\"prompt\": \"Once upon\", \"completion\": \" the cat sat\"}'; done > "
      "t");
  const char *learn =
      TG "train lora %s --data t --length 12 --steps 9 --lr 0.001 --full --checkpoint-every 5 "
         "--checkpoint fc -o one.gguf";
  assert_int_equal(run(learn, m), 0), says("done  9 steps");
  assert_int_equal(run(TG "train lora %s --data t --full --resume --checkpoint fc -o two.gguf", m), 0);
  says("resumed"), says("done  4 steps");
  same_files("one.gguf", "two.gguf");
  assert_int_equal(run(TG "train lora %s --data t --resume --checkpoint fc -o three", m), 1);
  says("fc is no checkpoint of a low-rank adapter");
}

/* The value behind "key": in a line; 0: it has none. */
static double number_in(const char *line, const char *key) {
  char quoted[40];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(line, quoted);
  return at ? atof(at + strlen(quoted)) : 0;
}

/* Of training: kernels, what the host did and what the program did between its calls are all the time that
 * passed, within 2 %. Counted twice, or not at all, is more than that. */
static void test_profile_sum(void **state) {
  (void)state;
  double sum = 0, first = 1e300, last = 0, kernels = 0;
  write_text();
  device = "CPU";
  assert_int_equal(run(TG "profile --keep steps.json --json -- " TG "train chargpt . " SMALL
                          "--steps 40 --sample 0 > all 2> /dev/null; grep '\"device\": ' all"),
                   0);
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    sum += number_in(line, "us");
    if (strstr(line, "\"device\": \"CPU\"")) kernels += number_in(line, "us");
  }
  assert_int_equal(run("grep -c '\"ph\":\"X\"' steps.json; grep '\"ph\":\"X\"' steps.json > spans"), 0);
  assert_true(atoi(text) > 40);
  char path[300], event[4096];
  snprintf(path, sizeof path, "%s/spans", folder);
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  while (fgets(event, sizeof event, f)) {
    double begin = number_in(event, "ts"), end = begin + number_in(event, "dur");
    first = begin < first ? begin : first;
    last = end > last ? end : last;
  }
  fclose(f);
  device = "INTERP";
  assert_true(kernels > 0);
  if (sum < 0.98 * (last - first) || sum > 1.02 * (last - first))
    fail_msg("the rows are %.0f us, the trace %.0f us", sum, last - first);
}

/* A program of ours under tg profile; the table, its JSON, what changed, and the trace. */
static void test_profile(void **state) {
  (void)state;
  assert_int_equal(run(TG "profile --keep t.json -- " TG "bench lower chain-1000"), 0),
      says("from the first to the last");
  assert_int_equal(run(TG "profile -- " TG "bench ops --small --divide 64 softmax"), 0), says("realize");
  assert_int_equal(run(TG "profile --json -- " TG "bench ops --small --divide 64 softmax > was 2> printed"),
                   0);
  assert_int_equal(run("cat printed"), 0), says("softmax"); /* stdout is the rows alone */
  assert_int_equal(run("wc -l < was"), 0);
  assert_true(atoi(text) > 2);
  assert_int_equal(run(TG "profile --compare was --top 3 -- " TG "bench ops --small --divide 64 softmax"), 0),
      says("of was"), says(" more (--top 0");
  assert_int_equal(run("head -c 1500 t.json > cut.json; " TG "profile t.json && " TG "profile cut.json"), 0),
      says("schedule");
  assert_int_equal(run("echo 5 > no.json; " TG "profile no.json"), 1), says("no.json");
  assert_int_equal(run(TG "profile --compare t.json t.json"), 1), says("t.json");
  assert_int_equal(run(TG "profile true"), 1), says("opened no context");
  assert_int_equal(run(TG "profile /no/such/program"), 1), says("/no/such/program");
  assert_int_equal(run(TG "profile -- sh -c 'exit 7'"), 1), says("ended with 7");
  assert_int_equal(run("mkdir tmp; TMPDIR=tmp " TG "profile -- sh -c 'kill -INT $$'"), 1);
  says("ended with 130 (Interrupt)\n");
  assert_int_equal(run("TMPDIR=tmp " TG "profile -- " TG "bench lower chain-1000"), 0);
  assert_int_equal(run("ls tmp | wc -l"), 0);
  assert_int_equal(atoi(text), 0);
}

/* What somebody gets wrong who begins: it is said what is wrong, and before any work is done. */
static void test_mistakes(void **state) {
  char a[600];
  (void)state;
  assert_int_equal(run("mkdir -p short; printf 'to be or not' > short/input.txt; : > empty.gguf; "
                       "head -c 3000 " TG " > other.onnx"),
                   0);
  assert_int_equal(run(TG "train chargpt short"), 1);
  says("a text of 12 characters is too short for a context of 64, which wants 650");
  assert_int_equal(run(TG "train chargpt short --out no/such.safetensors"), 1);
  says("tg train: no/such.safetensors cannot be written: No such file");
  assert_int_equal(run(TG "train chargpt short --resume --checkpoint nowhere"), 1);
  says("--resume: there is no nowhere; --checkpoint says where it is");
  assert_int_equal(run(TG "viz -- sh -c true"), 1), says("sh ran nothing in a context of this library");
  assert_int_equal(run(TG "info empty.gguf"), 1), says("empty.gguf: an empty file");
  assert_int_equal(run(TG "info " TG), 1), says("a kind of file that is not known here");
  assert_int_equal(run(TG "run other.onnx"), 1), says("it is cut off, or no ONNX model");
  if (data("onnx-mnist/mnist.onnx", a))
    assert_int_equal(run(TG "run '%s' Input3=", a), 1), says("Input3=: a file, a number or [..] is missing");
  if (data("mobilenet/daisy.jpg", a)) {
    assert_int_equal(run("head -c 3000 '%s' > cut.jpg", a), 0);
    if (data("mobilenet/mobilenet_v1_0.25_128.onnx", a))
      assert_int_equal(run(TG "run '%s' cut.jpg", a), 1), says("cut.jpg: ");
  }
  if (data("stories260K/stories260K-q8_0.gguf", a)) {
    assert_int_equal(run(TG "train lora '%s' --data short/input.txt -o no/such/", a), 1);
    says("tg train lora: no/such/ cannot be written: No such file");
    assert_int_equal(run("echo a | " TG "chat '%s' --tokens 1 --context 600", a), 0);
    says("a context of 600 is more than the 512 that the model was trained with");
  }
}

/* A signal to the command alone, as a supervisor sends it, ends the program that the command runs. */
static void test_signals(void **state) {
  static const char *const commands[] = {"profile", "explain", "viz --keep v", "launch -n 2", "bisect"};
  static const char *const programs[] = {
      "echo $$ > pid; exec sleep 60",
      "trap \"exit 0\" INT TERM; echo $$ > pid; while :; do sleep .05; done", /* it ends as it likes */
      "[ -n \"$TG_FUSE\" ] || exit 1; echo $$ > pid; exec sleep 60"};         /* the second run of bisect */
  (void)state;
  for (size_t c = 0; c < sizeof commands / sizeof *commands; c++)
    for (size_t p = 0; p < 3; p++) {
      if (p == 2 && strcmp(commands[c], "bisect")) continue;
      const char *number = (c + p) % 2 ? "TERM" : "INT";
      int code = run("rm -f pid; " TG "%s -- sh -c '%s' & tg=$!; while [ ! -s pid ]; do sleep .02; done; "
                     "kill -%s $tg; wait $tg; code=$?; ! kill -0 $(cat pid) || exit 99; exit $code",
                     commands[c], programs[p], number);
      if (code != 130) fail_msg("%s, SIG%s: %d, not 130: %s", commands[c], number, code, text);
    }
}

/* A program that does not start, or is none of ours: each command that runs one says why, and what is meant. */
static void test_programs_absent(void **state) {
  static const char *const commands[] = {"profile", "explain", "viz --no-page --keep v", "launch -n 1"};
  (void)state;
  assert_int_equal(run("printf '#!/bin/sh\nexit 0\n' > here; chmod +x here; echo x > no_program"), 0);
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    assert_int_not_equal(run(TG "%s /no/such/program", commands[i]), 0);
    says("/no/such/program cannot be run: No such file");
    assert_null(strstr(text, "ended with"));
    assert_int_not_equal(run(TG "%s ./no_program", commands[i]), 0);
    says("./no_program cannot be run: Permission denied");
    assert_int_not_equal(run(TG "%s here", commands[i]), 0), says("the file that is here is ./here");
  }
  assert_int_equal(run(TG "profile ./here -n 4"), 2), says("tg profile -- ./here ..");
  assert_int_equal(run(TG "viz ."), 1), says("a folder without a run");
}

/* What cannot be written is said, and is a failure. */
static void test_output_full(void **state) {
  (void)state;
  if (access("/dev/full", W_OK)) skip();
  assert_int_equal(run(TG "plan > /dev/full"), 1),
      says("not all of the output could be written: No space left");
}

/* A stream that the caller has closed is none of the files that are opened. */
static void test_streams_closed(void **state) {
  (void)state;
  device = "CPU";
  assert_int_equal(run(TG "help >&-"), 1), says("not all of the output could be written: Bad file");
  assert_int_equal(run(TG "run nothing.onnx 2>&-"), 1), assert_string_equal(text, "");
  assert_int_equal(run(TG "opt --list > listed; " TG "opt - <&-"), 1), says("Bad file descriptor");
  write_text();
  assert_int_equal(run(TG "train chargpt . " SMALL "--steps 1 --log closed >&-"), 1);
  assert_int_equal(run("cat closed"), 0), json_lines(2); /* and nothing of what is printed at the end */
}

/* What cannot be written is refused before the work, where that can be known. */
static void test_written_where(void **state) {
  (void)state;
  char m[600];
  device = "CPU";
  run("mkdir -p folder");
  write_text();
  const char *train = TG "train chargpt . " SMALL "--steps 1 %s", *early = "is a folder";
  assert_int_equal(run(train, "--out folder"), 1), says(early), assert_null(strstr(text, "loss"));
  assert_int_equal(run(train, "--out none/"), 1), says(early), assert_null(strstr(text, "loss"));
  assert_int_equal(run(train, "--checkpoint folder"), 1), says(early);
  assert_int_equal(run(train, "--plot folder"), 1), says(early);
  assert_int_equal(run(train, "--plot x.gif"), 2), says("as .svg, .png or .ppm");
  assert_int_equal(run(train, "--log folder"), 1), says("--log folder: Is a directory");
  assert_int_equal(run(TG "run no.onnx --capture folder"), 1), says(early);
  assert_int_equal(run(TG "run no.onnx --save-bundle folder"), 1), says(early);
  if (!access("/dev/full", W_OK))
    assert_int_equal(run(train, "--log /dev/full"), 1),
        says("--log /dev/full: not all of it was written: No space");
  if (!data("stories260K/stories260K-q8_0.gguf", m)) skip();
  assert_int_equal(run("echo a > t; " TG "train lora %s --data t --full --out folder", m), 1), says(early);
  assert_int_equal(run(TG "train lora %s --data t --out t", m), 1), says("t is no folder");
  assert_int_equal(run("mkdir taken.safetensors; " TG "train lora %s --data t --out taken.safetensors", m),
                   1),
      says(early);
  assert_int_equal(run(TG "merge %s nothing -o folder", m), 1), says(early);
  assert_int_equal(run(TG "merge %s nothing -o none/m.gguf", m), 1), says("none/m.gguf cannot be written");
  if (access("/dev/full", W_OK)) skip();
  /* a reply that goes nowhere ends */
  assert_int_equal(run(TG "run %s --prompt Once --tokens 100 > /dev/full", m), 1);
  says("| 1 tok,"), says("could be written: No space left");
  /* lines of a log are there as soon as they are written: when a checkpoint is, those before it */
  assert_int_equal(
      run("{ " TG "train lora %s --data t --steps 1000000 --log lines --checkpoint kept "
          "--checkpoint-every 3 2> /dev/null & } ; until [ -s kept ]; do sleep 0.1; done; kill -9 $!; "
          "[ $(wc -l < lines) -ge 3 ]",
          m),
      0);
}

/* A captured program of two devices: the half of x that the second has, twice. */
static void test_run_devices(void **state) {
  (void)state;
  static const char program[] =
      "tinygrad program 2\\ndevice \\\"INTERP\\\"\\ndevice \\\"INTERP:1\\\"\\n"
      "parts 2 axis 0\\nm0 = input d0 f32 (1) \\\"x\\\"\\nm1 = input d1 f32 (2) \\\"x\\\"\\n"
      "m2 = output d0 f32 (2) \\\"y\\\"\\nm3 = scratch d1 f32 2\\nstep d1 m1 -> m3\\n"
      "u0 = BUFFER[f32, 0, 2]\\nu1 = ADD(u0, u0)\\nend\\ncopy m3 m2\\n";
  char head[1000], path[100];
  int n = snprintf(head, sizeof head,
                   "{\"__metadata__\":{\"format\":\"tinygrad.program\",\"program\":\"%s\"}}", program);
  snprintf(path, sizeof path, "%s/pair.safetensors", folder);
  FILE *f = fopen(path, "wb");
  assert_true(f && n > 0 && n < (int)sizeof head);
  uint64_t size = (uint64_t)n;
  assert_true(fwrite(&size, 8, 1, f) == 1 && fwrite(head, (size_t)n, 1, f) == 1 && !fclose(f));
  assert_int_equal(run(TG "run pair.safetensors '[1.0, 2.0, 4.0]'"), 0), says("4 .. 8, mean 6");
  assert_int_equal(run(TG "run pair.safetensors --device CPU,INTERP '[1.0, 2.0, 4.0]'"), 0),
      says("4 .. 8, mean 6");
  assert_int_equal(run(TG "run pair.safetensors --device CPU,INTERP,CPU:1"), 1);
  says("it is of 2 devices: INTERP, INTERP:1; 3 are given");
  assert_int_equal(run(TG "info pair.safetensors"), 0), says("device 1 \"INTERP:1\""),
      says("(2)  of device 1");
  assert_int_equal(run(TG "info pair.safetensors --json"), 0), json_lines(5), says("\"device\":1");
  assert_int_equal(run(TG "compile pair.safetensors"), 1), says("of several devices");
}

/* A model as C: the program of examples/export, which has no library, says what it sees. */
static void test_compile(void **state) {
  (void)state;
  char m[600];
  assert_int_equal(run(TG "compile /nonexistent.onnx"), 1), says("/nonexistent.onnx");
  assert_int_equal(run(TG "compile"), 2), says("is missing");
  if (!data("onnx-mnist/mnist.onnx", m)) skip();
  assert_int_equal(run(TG "compile %s -o mnist", m), 0), says("operations a run"), says("what lives at once"),
      says("wrote mnist.c, mnist.h\n");
  assert_int_equal(run("cc -std=c99 -pedantic -Wall -Wextra -Werror -O1 -I. " TG_TESTS
                       "/../examples/export/digit.c mnist.c -lm -o digit"),
                   0);
  assert_int_equal(run("(printf 'P5 28 28 255\\n'; head -c 784 /dev/zero) > black.pgm && ./digit black.pgm"),
                   0);
  says("it is a ");
  assert_int_equal(run("./digit"), 1), says("usage");
  assert_int_equal(run(TG "run %s zeros --capture c.safetensors", m), 0);
  assert_int_equal(run(TG "compile c.safetensors -o from_capture --name mnist --weights w.bin --json"), 0);
  json_lines(1), says("\"arena_least\":"), says("\"out\":\"from_capture\"");
  assert_int_equal(run("cc -std=c99 -O1 -c from_capture.c && grep -c FILE_BYTES from_capture.h"), 0);
  assert_int_equal(run(TG "compile %s --out /nonexistent/m", m), 1), says("/nonexistent/m.h");
  assert_int_equal(run(TG "compile %s --name while", m), 1), says("identifier");
  assert_int_equal(run(TG "compile %s Input3=zeros -o no_input", m), 0);
  assert_int_equal(run("grep '_run(no_input .m, float .Plus214_Output_0)' no_input.h"), 0);
  assert_int_equal(run(TG "compile %s zeros", m), 1), says("NAME=WHAT");
  assert_int_equal(run(TG "compile %s -o little --max-ram 30000", m), 0),
      says("of 22 plans the one of 25088 bytes");
  assert_int_equal(run(TG "compile %s -o little --max-ram 3000", m), 1), says("more than the 3000");
  assert_int_equal(run(TG "compile %s -o shares --threads 2 --weights w.bin --big-endian", m), 0);
  assert_int_equal(run("grep -c 'FILE_BIG_ENDIAN 1' shares.h && grep -c 'spread(m, share_' shares.c"), 0);
  assert_int_equal(run(TG "compile %s -o drops --stream --weights w.bin", m), 0);
  assert_int_equal(
      run("cc -std=c99 -pedantic -Wall -Wextra -Werror -O1 -c drops.c && grep -c 'm->bring' drops.c"), 0);
  assert_int_equal(run(TG "compile %s --stream", m), 1), says("--stream is for --weights");
  assert_int_equal(run(TG "compile %s --threads 0", m), 2), says("1");
  assert_int_equal(run(TG "compile %s --integers", m), 1), says("Input3 is of floats");
  assert_int_equal(run(TG "compile c.safetensors --integers"), 1), says("--integers is for ONNX models");
  assert_int_equal(run(TG "compile %s --simd", m), 1), says("--simd is for --wasm");
  assert_int_equal(run(TG "compile %s --wasm --weights w.bin", m), 1), says("--weights");
  assert_int_equal(run(TG "compile %s --wasm --target native", m), 1), says("--target");
  assert_int_equal(run(TG "compile %s -o bound --cffi", m), 0);
  assert_int_equal(run("python3 -m py_compile bound.py && grep -c Plus214_Output_0 bound.py"), 0);
  assert_int_equal(run(TG "compile %s -o", m), 2), says("needs a value");
}

static void test_run(void **state) {
  (void)state;
  char m[600], a[600], b[600];
  assert_int_equal(run(TG "run /nonexistent.onnx"), 1), says("/nonexistent.onnx");
  assert_int_equal(run(TG "run"), 2), says("FILE");
  assert_int_equal(run(TG "run input.txt"), 1), says("onnx");
  if (!data("onnx-mnist/mnist.onnx", m) || !data("onnx-mnist/test_data_set_0/input_0.pb", a)) skip();
  assert_int_equal(run(TG "run %s %s --out y_", m, a), 0);
  says("opset 8"), says("12 nodes"), says("class 2"), says("100.0 %");
  assert_int_equal(run(TG "run %s %s --json --bench --runs 3 2>/dev/null", m, a), 0);
  json_lines(10), says("\"class\":2"), says("\"captured\":true"); /* one a kernel */
  says("\"us\":"), says("\"nodes\":[\"Convolution28 (Conv)"), says("\"Plus214 (Add)\"");
  assert_int_equal(run(TG "run %s %s --bench --runs 3 --rows 2", m, a), 0);
  says("Convolution110 (Conv)"), says(" more kernel"), says("measured one by one, medians of 3 runs");
  assert_int_equal(run(TG "run %s Input3=zeros", m), 0);
  assert_int_equal(run(TG "run %s random:2x2", m), 1), says("Input3");
  assert_int_equal(run(TG "run %s zeros zeros", m), 1), says("no input left");
  assert_int_equal(run(TG "run %s --size n=2", m), 1), says("no free sizes");
  assert_int_equal(run(TG "run %s --draw x.jpg", m), 2), says(".png or .ppm");
  assert_int_equal(run(TG "run %s --lora x", m), 2), says("--lora means nothing without --prompt");
  assert_int_equal(run(TG "run %s --prompt x --json", m), 2), says("--json means nothing beside --prompt");
  assert_int_equal(run(TG "profile --keep /nonexistent/x --no-roof %s", m), 1), says("/nonexistent/x");
  assert_int_equal(run(TG "run --bench --runs 3 %s Input4=%s", m, a), 1);
  says("the model has no input Input4; its inputs: Input3");
  assert_int_equal(run(TG "run --bench --runs 3 %s Input3=%s", m, a), 0), says("class 2"), says("captured");
  assert_int_equal(run("ls -1 y_*"), 0), says("y_Plus214_Output_0.npy");
  /* as a captured program: the same bytes; it is written from a program too */
  assert_int_equal(run(TG "run %s %s --capture p.safetensors", m, a), 0);
  assert_int_equal(run(TG "run p.safetensors %s --out z_ --capture q.safetensors", a), 0);
  says("captured program"), says("class 2"), says("input Input3");
  assert_int_equal(run(TG "run q.safetensors Input3=%s --json --bench --runs 3 2>/dev/null", a), 0);
  json_lines(10), says("\"class\":2"), says("\"captured\":true");
  assert_int_equal(
      run("cmp y_Plus214_Output_0.npy z_Plus214_Output_0.npy && cmp p.safetensors q.safetensors"), 0);
  assert_int_equal(run(TG "run p.safetensors zeros:2x2"), 1), says("input 0 has shape (2, 2)");
  assert_int_equal(run(TG "run p.safetensors zeros --capture /nonexistent/p"), 1), says("/nonexistent/p");
  assert_int_equal(run(TG "info p.safetensors"), 0);
  says("captured program"), says("input"), says("(1, 1, 28, 28)"), says("Plus214_Output_0"),
      says("Parameter193");
  assert_int_equal(run(TG "info p.safetensors --json"), 0), json_lines(4), says("\"input\":\"Input3\"");
  /* a picture of one colour, which needs no library */
  assert_int_equal(
      run("printf 'P6 2 2 255\\n\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377\\377' > p.ppm"), 0);
  assert_int_equal(run(TG "run %s p.ppm", m), 0), says("Plus214_Output_0");
  assert_int_equal(run(TG "run %s input.txt", m), 1), says("neither PNG nor JPEG");
  if (!data("mobilenet/mobilenet_v1_0.25_128.onnx", m) || !data("mobilenet/daisy.jpg", a) ||
      !data("mobilenet/labels.txt", b))
    skip();
  int code = run(TG "run %s %s --mean 0.5 --std 0.5 --labels %s --top 2", m, a, b);
  if (built_without(code, "libjpeg")) skip();
  assert_int_equal(code, 0);
  const char *first = strstr(text, "daisy"), *second = strstr(text, "cabbage butterfly");
  assert_true(first && second && first < second);
}

/* A free size that --size gives bounds: one capture, and one text, for all of them. */
static void test_free_size(void **state) {
  (void)state;
  device = "INTERP";
  model_write("rows.onnx", "Exp");
  assert_int_equal(run(TG "run rows.onnx --size batch=2..6 '[[0, 1, -2], [3, 0, 0], [0, 0, 0]]' --out all_ "
                          "--capture v.safetensors"),
                   0);
  says("(3, 3)");
  assert_int_equal(run(TG "info v.safetensors"), 0);
  says("size    \"batch\": 2 .. 6"), says("(batch, 3)");
  assert_int_equal(run(TG "info v.safetensors --json"), 0), json_lines(4), says("\"shape\":[\"batch\", 3]");
  assert_int_equal(
      run(TG "run v.safetensors '[[0, 1, -2], [3, 0, 0], [0, 0, 0]]' --out one_ && cmp all_y.npy one_y.npy"),
      0);
  assert_int_equal(run(TG "run v.safetensors --size batch=5"), 0), says("(5, 3)");
  assert_int_equal(run(TG "run v.safetensors"), 0), says("(2, 3)"); /* the least */
  assert_int_equal(run(TG "run v.safetensors zeros:7x3"), 1), says("size batch is 7; it may be 2 to 6");
  assert_int_equal(run(TG "run v.safetensors --size batch=3 zeros:4x3"), 1),
      says("axis 0 of input x is 4, and batch is 3");
  assert_int_equal(run(TG "run v.safetensors --size batch=2..4"), 1), says("no size");
  assert_int_equal(run(TG "run rows.onnx --size batch=6..2"), 1), says("LO not above HI");
  assert_int_equal(run(TG "compile rows.onnx --size batch=2..6 -o rows && grep -c 'f32 (batch, 3)' rows.h"),
                   0),
      says("2\n");
  static const char source[] = "#include \"rows.h\"\n#include <stdio.h>\nstatic rows m;\n"
                               "int main(void) {\n  float x[18] = {0}, y[18];\n  rows_reset(&m);\n"
                               "  int all = rows_run(&m, x, y, 6), few = rows_run(&m, x, y, 1);\n"
                               "  printf(\"%d %d %d\\n\", all, few, y[17] == 1);\n}\n";
  file_write("rows_main.c", source, sizeof source - 1);
  assert_int_equal(run("cc -o rows_main rows_main.c rows.c -lm && ./rows_main"), 0), says("0 2 1");
}

/* The boxes of a trained detector on a photograph are those that its readme says; they are drawn where they
 * are. */
static void test_boxes(void **state) {
  (void)state;
  char m[600], a[600], b[600];
  if (!data("fastestdet/FastestDet.onnx", m) || !data("fastestdet/bus.jpg", a) ||
      !data("fastestdet/coco.names", b))
    skip();
  device = "INTERP";
  int code = run(TG "run %s %s --bgr --labels %s --boxes auto --draw bus.ppm", m, a, b);
  if (built_without(code, "libjpeg")) skip();
  assert_int_equal(code, 0);
  says("96."), says("bus "), says("x 44 .. 583  y 82 .. 416");
  assert_int_equal(run(TG "run %s %s --bgr --labels %s --boxes fastestdet --json 2>/dev/null", m, a, b), 0);
  json_lines(2), says("\"label\":\"bus\"");
  /* a frame of one colour, 3 pixels wide, where the box begins */
  assert_int_equal(
      run("tail -c +16 bus.ppm | tail -c +$((3 * (640 * 200 + 44) + 1)) | head -c 9 | od -An -tx1 "
          "| tr ' ' '\\n' | sort | uniq -c | tr -s ' ' | grep -c '^ [369] '"),
      0);
  assert_int_equal(run(TG "run %s %s --bgr --boxes auto --score 0.99", m, a), 0), says("no box");
  assert_int_equal(run(TG "run %s random --boxes auto --draw x.png", m), 1), says("no input is a picture");
  assert_int_equal(run(TG "run %s %s --boxes auto --draw x.gif", m, a), 2), says(".png or .ppm");
  assert_int_equal(run(TG "run %s %s --boxes yolo", m, a), 1), says("no such format"), says("fastestdet");
  assert_int_equal(run(TG "run %s %s --boxes ssd", m, a), 1), says("shapes");
}

/* Weights that others trained give the accuracy that their readme says. */
static void test_eval(void **state) {
  (void)state;
  char w[600], d[600];
  if (!data("resnet20-cifar10/resnet20-12fca82f.th", w) || !data("cifar10", d)) skip();
  device = "CPU";
  assert_int_equal(run(TG "train cifar %s --weights %s --eval", d, w), 0);
  says("(1,997/2,000)");
}

/* From a server on this machine: whole, cut off and gone on with, with a wrong sum, and not there. */
static void test_fetch(void **state) {
  (void)state;
  device = "INTERP";
  int code = run(TG "fetch file:///dev/null --out nothing");
  if (built_without(code, "libcurl")) skip();
  if (run("command -v python3")) {
    print_message("skipped: no python3 here, which the server is written in\n");
    skip();
  }
  assert_int_equal(run("seq 200000 > served && sha256sum served | cut -d' ' -f1 > sum"), 0);
  const char *wait = "for i in $(seq 100); do [ -f port ] && break; sleep 0.1; done; cat port";
  assert_int_equal(run("python3 '" TG_TESTS "/files/server.py' > /dev/null 2>&1 & echo $! > pid; %s", wait),
                   0);
  int port = atoi(text);
  assert_true(port > 0);
  int whole = run(
      TG "fetch http://127.0.0.1:%d/served --sha256 $(cat sum) --json && cmp served.part served; ls", port);
  bool same = strstr(text, "\"sha256\":") && !strstr(text, "served.part\n");
  int gone_on = run("head -c 500000 served > copy.part; " TG
                    "fetch http://127.0.0.1:%d/served --out copy --sha256 $(cat sum) && cmp copy served",
                    port);
  int again = run(
      "cp served twice.part; " TG "fetch http://127.0.0.1:%d/served --out twice && cmp twice served", port);
  int wrong = run(TG "fetch http://127.0.0.1:%d/served --out bad --sha256 %064d", port, 0);
  bool told = strstr(text, "has the sum") != NULL;
  int named = run(TG "fetch 'http://127.0.0.1:%d/served?download=true#x' --sha256 "
                     "$(tr a-f A-F < sum) && rm 'served?download=true'",
                  port);
  bool plain = named && strstr(text, "  served\n");
  run("mkdir -p folder; mkfifo pipe; ln -s real link; echo old > real");
  int linked = run(TG "fetch http://127.0.0.1:%d/served --out link && [ -L link ] && cmp real served", port);
  int no_file =
      run(TG "fetch http://127.0.0.1:%d/served --out pipe; code=$?; [ -p pipe ] && exit $code", port);
  bool refused = strstr(text, "is no file") != NULL;
  int no_sum = run(TG "fetch http://127.0.0.1:%d/served --sha256 00", port);
  int in_folder = run(TG "fetch http://127.0.0.1:%d/served --out folder", port);
  int left = run("ls bad bad.part");
  int missing =
      run(TG "fetch http://127.0.0.1:%d/nothing --out none; code=$?; ls none* && exit 9; exit $code", port);
  run("kill $(cat pid)");
  (void)whole;
  assert_true(same && told && left != 0 && plain && refused);
  assert_int_equal(linked, 0);
  assert_int_equal(no_file, 1);
  assert_int_equal(no_sum, 2);
  assert_int_equal(in_folder, 1);
  assert_int_equal(gone_on, 0);
  assert_int_equal(again, 0);
  assert_int_equal(wrong, 1);
  assert_int_equal(missing, 1);
}

static int begin(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  char line[100];
  snprintf(line, sizeof line, "rm -rf %s", folder);
  return system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_help),
                                     cmocka_unit_test(test_wrong_use),
                                     cmocka_unit_test(test_completion),
                                     cmocka_unit_test(test_json),
                                     cmocka_unit_test(test_train),
                                     cmocka_unit_test(test_bf16),
                                     cmocka_unit_test(test_train_devices),
                                     cmocka_unit_test(test_plan),
                                     cmocka_unit_test(test_train_ranks),
                                     cmocka_unit_test(test_interrupted),
                                     cmocka_unit_test(test_info_files),
                                     cmocka_unit_test(test_chat),
                                     cmocka_unit_test(test_chat_pictures),
                                     cmocka_unit_test(test_embed),
                                     cmocka_unit_test(test_adapter),
                                     cmocka_unit_test(test_full),
                                     cmocka_unit_test(test_run),
                                     cmocka_unit_test(test_profile),
                                     cmocka_unit_test(test_programs_absent),
                                     cmocka_unit_test(test_signals),
                                     cmocka_unit_test(test_mistakes),
                                     cmocka_unit_test(test_output_full),
                                     cmocka_unit_test(test_profile_sum),
                                     cmocka_unit_test(test_compile),
                                     cmocka_unit_test(test_free_size),
                                     cmocka_unit_test(test_boxes),
                                     cmocka_unit_test(test_eval),
                                     cmocka_unit_test(test_fetch),
                                     cmocka_unit_test(test_streams_closed),
                                     cmocka_unit_test(test_written_where),
                                     cmocka_unit_test(test_run_devices)};
  cmocka_set_test_filter(getenv("TG_TEST"));
  cmocka_set_test_filter(getenv("TG_TEST"));
  return cmocka_run_group_tests(tests, begin, end);
}
