/* test_hub.c: models by name, hf:OWNER/REPO[:QUANT]. `tg` is run as a process against a hub of this machine
 * (tests/files/hub.py), which lists and serves what the test puts into the folder `hub`, and writes down each
 * request. The models are those of the shared data: what `tg` says with them is known. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "tests/shell.h"

#define TG     "'" TG_BINARY "' "
#define MODELS "tinygrad-c/models/" /* below XDG_CACHE_HOME */

static char folder[] = "/tmp/tg-hub-XXXXXX";
static const char *missing; /* what a hub cannot be without */
static int port;

/* Runs a shell line in the folder; the exit code. stdout and stderr are in text. */
static int run(const char *form, ...) {
  char line[2400], args[2000];
  va_list ap;
  va_start(ap, form);
  vsnprintf(args, sizeof args, form, ap);
  va_end(ap);
  snprintf(line, sizeof line,
           "cd %s && unset HF_TOKEN TG_MODELS; export XDG_CACHE_HOME=%s TG_DEV=CPU "
           "HF_ENDPOINT=http://127.0.0.1:%d/; { %s; } 2>&1",
           folder, folder, port, args);
  return shell_run(line);
}

static void says_not(const char *what) {
  if (strstr(text, what)) fail_msg("'%s' in: %s", what, text);
}

/* Puts a model into a repository under a name: the small one (344,480 bytes) or the large one (1,054,496). */
static void put(const char *place, bool large) {
  assert_int_equal(
      run("mkdir -p $(dirname 'hub/%s') && cp %s.gguf 'hub/%s'", place, large ? "large" : "small", place), 0);
}

/* Puts a text into a repository. */
static void put_text(const char *place, const char *what) {
  assert_int_equal(run("mkdir -p $(dirname 'hub/%s') && printf '%%s' '%s' > 'hub/%s'", place, what, place),
                   0);
}

static bool hub_is_there(void) {
  if (missing) print_message("skipped: %s\n", missing);
  return !missing && !run(": > requests");
}

/* ---- from a name to a model that talks */
static void test_one_command(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  put("karpathy/stories/README.md", false);
  put("karpathy/stories/stories-Q8_0.gguf", false);
  put("karpathy/stories/stories-f32.gguf", true);
  assert_int_equal(run(TG "run hf:karpathy/stories --prompt 'Once upon a time' --tokens 8 --temperature 0"),
                   0);
  says("there was a little girl");
  says("downloading stories-Q8_0.gguf (336.41 KiB) of karpathy/stories from http://127.0.0.1:");
  assert_int_equal(
      run("cmp small.gguf " MODELS "karpathy/stories/stories-Q8_0.gguf; ls -a " MODELS "karpathy/stories"),
      0);
  says_not("f32"), says_not("README"), says_not(".part");
  /* the next call asks for nothing: it works without a hub, and says nothing of one */
  assert_int_equal(run("HF_ENDPOINT=http://127.0.0.1:1 " TG
                       "run hf:karpathy/stories --prompt 'Once upon a time' --tokens 8 --temperature 0"),
                   0);
  says("there was a little girl"), says_not("downloading");
  /* every command that takes a model takes the name, and so does --draft */
  assert_int_equal(run(TG "info hf:karpathy/stories"), 0), says("general.architecture");
  assert_int_equal(run("echo Once | " TG "chat hf:karpathy/stories --tokens 4"), 0);
  assert_int_equal(run(TG "embed hf:karpathy/stories 'hf:a/b is a text here'"), 0), says("[");
  assert_int_equal(run(TG "merge hf:karpathy/stories hf:a/b -o new.gguf"), 1), says("hf:a/b");
  assert_int_equal(run(TG "bench llm hf:karpathy/stories --prompt 0 --generate 2"), 0);
  assert_int_equal(run(TG "run hf:karpathy/stories:F32 --draft hf:karpathy/stories --prompt Once --tokens 6"),
                   0);
  says("guesses right"), says("stories-f32.gguf (1.01 MiB)");
  assert_int_equal(run(TG "serve hf:karpathy/none hf:karpathy/stories"), 1), says("karpathy/none");
  assert_int_equal(run(TG "train lora hf:karpathy/none --data small.gguf"), 1), says("karpathy/none");
  assert_int_equal(run(TG "help chat"), 0), says("hf:OWNER/REPO[:QUANT]");
}

/* `tg fetch` prints the path alone to stdout; it asks the hub anew, and mends a file that has changed. */
static void test_fetch(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  put("own/m/a-Q4_K_M.gguf", false);
  assert_int_equal(run(TG "fetch hf:own/m 2> /dev/null"), 0);
  char path[200];
  snprintf(path, sizeof path, "%s/" MODELS "own/m/a-Q4_K_M.gguf\n", folder);
  assert_string_equal(text, path);
  assert_int_equal(run(TG "fetch hf:own/m --json 2> /dev/null"), 0), says("{\"path\":\""), says("gguf\"}\n");
  assert_int_equal(run("printf x | dd of=" MODELS "own/m/a-Q4_K_M.gguf bs=1 seek=9999 conv=notrunc; " TG
                       "fetch hf:own/m && cmp small.gguf " MODELS "own/m/a-Q4_K_M.gguf"),
                   0);
  says("is downloaded again");
  /* the hub has another file of the same name and size */
  assert_int_equal(run("printf x | dd of=hub/own/m/a-Q4_K_M.gguf bs=1 seek=9999 conv=notrunc; " TG
                       "fetch hf:own/m && cmp hub/own/m/a-Q4_K_M.gguf " MODELS "own/m/a-Q4_K_M.gguf"),
                   0);
  /* and a new one: a model that is here already is not asked for, `tg fetch` does */
  put("own/m/b-Q8_0.gguf", false);
  assert_int_equal(run(TG "info hf:own/m:Q8_0"), 1), says("no file has Q8_0"), says("tg fetch hf:own/m:Q8_0");
  assert_int_equal(run(TG "fetch hf:own/m:Q8_0 && " TG "info hf:own/m:Q8_0"), 0);
  assert_int_equal(run(TG "fetch hf:own/m --out x"), 2), says("--out is for a URL");
  assert_int_equal(run("TG_MODELS=here " TG "fetch hf:own/m && ls here/own/m/a-Q4_K_M.gguf"), 0);
}

/* ---- which file is meant */
static void choice(const char *name, const char *file) {
  char end[200];
  assert_int_equal(run(TG "fetch hf:%s 2> /dev/null", name), 0);
  snprintf(end, sizeof end, "/%s\n", file);
  says(end);
}

static void test_choice(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  static const char *const names[] = {"m-Q2_K.gguf",   "m-Q4_K.gguf",    "m-Q4_K_M.gguf",
                                      "m-Q4_K_S.gguf", "m-Q8_0.gguf",    "m-f16.gguf",
                                      "m-bf16.gguf",   "m-imatrix.gguf", "m-IQ4_XS.gguf"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char place[100];
    snprintf(place, sizeof place, "many/m/%s", names[i]);
    put(place, false);
  }
  put("many/m/mmproj-Q8_0.gguf", false);
  choice("many/m", "m-Q4_K_M.gguf");
  choice("many/m:Q4_K", "m-Q4_K.gguf"); /* not m-Q4_K_M */
  choice("many/m:q8_0", "m-Q8_0.gguf"); /* not mmproj */
  choice("many/m:F16", "m-f16.gguf");   /* not bf16 */
  choice("many/m:m-Q2_K.gguf", "m-Q2_K.gguf");
  assert_int_equal(run("rm hub/many/m/m-Q4_K.gguf; " TG "fetch hf:many/m:Q4_K"), 1);
  says("Q4_K is in the names of 2 files"), says("336.41 KiB m-Q4_K_M.gguf"), says("m-Q4_K_S"),
      says_not("Q2_K");
  assert_int_equal(run("rm hub/many/m/m-Q4_K_[MS].gguf"), 0);
  choice("many/m", "m-Q8_0.gguf");
  assert_int_equal(run("rm hub/many/m/m-Q8_0.gguf; " TG "fetch hf:many/m"), 1);
  says("which file? Say hf:many/m:WORD"), says("m-IQ4_XS.gguf"), says_not("imatrix"), says_not("mmproj");
  assert_int_equal(run(TG "fetch hf:many/m:XS"), 0); /* a word may follow a _ */
  assert_int_equal(run(TG "fetch hf:many/m:Q4_XS"), 1), says("no file has Q4_XS in its name:"), says("Q2_K");
  put("one/m/weights.gguf", false);
  choice("one/m", "weights.gguf");
}

/* A model in several files: all are downloaded, the path is the first. */
static void test_pieces(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  put("parts/m/Q8_0/m-Q8_0-00001-of-00003.gguf", false);
  put("parts/m/Q8_0/m-Q8_0-00002-of-00003.gguf", true);
  put("parts/m/Q8_0/m-Q8_0-00003-of-00003.gguf", false);
  choice("parts/m", "Q8_0/m-Q8_0-00001-of-00003.gguf");
  assert_int_equal(run("cmp large.gguf " MODELS "parts/m/Q8_0/m-Q8_0-00002-of-00003.gguf && ls " MODELS
                       "parts/m/Q8_0/m-Q8_0-00003-of-00003.gguf"),
                   0);
  assert_int_equal(run("rm hub/parts/m/Q8_0/*3-of* && " TG "fetch hf:parts/m"), 1);
  says("m-Q8_0-00003-of-00003.gguf is missing");
}

/* Without a gguf file: config.json, the weights and what describes them; the path is the folder. */
static void test_folder(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  static const char *const wanted[] = {
      "config.json",           "model.safetensors",         "tokenizer.json",
      "tokenizer_config.json", "generation_config.json",    "chat_template.jinja",
      "modules.json",          "sentence_bert_config.json", "1_Pooling/config.json",
      "2_Dense/config.json"};
  static const char *const others[] = {"pytorch_model.bin", "onnx/model.onnx", "onnx/config.json",
                                       "README.md", "other.safetensors"};
  char place[100];
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    snprintf(place, sizeof place, "form/m/%s", wanted[i]);
    put_text(place, wanted[i]);
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    snprintf(place, sizeof place, "form/m/%s", others[i]);
    put_text(place, "other");
  }
  choice("form/m", "form/m");
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    assert_int_equal(run("cmp 'hub/form/m/%s' '" MODELS "form/m/%s'", wanted[i], wanted[i]), 0);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    assert_int_equal(run("[ ! -e '" MODELS "form/m/%s' ]", others[i]), 0);
  assert_int_equal(run(TG "run hf:form/m --prompt x"), 1), says("config.json"); /* which is no JSON here */
  assert_int_equal(run(TG "fetch hf:form/m:Q8_0"), 1), says("no gguf file, of which :Q8_0 would choose one");
  /* shards, as the index lists them */
  assert_int_equal(run("rm hub/form/m/model.safetensors"), 0);
  put_text("form/m/a.safetensors", "a");
  put_text("form/m/b.safetensors", "b");
  put_text(
      "form/m/model.safetensors.index.json",
      "{\"weight_map\": {\"x\": \"a.safetensors\", \"y\": \"b.safetensors\", \"z\": \"a.safetensors\"}}");
  choice("form/m", "form/m");
  assert_int_equal(
      run("cd " MODELS "form/m && cat a.safetensors b.safetensors && [ ! -e other.safetensors ]"), 0);
  put_text("form/m/model.safetensors.index.json", "{\"weight_map\": {\"x\": \"../../a.safetensors\"}}");
  assert_int_equal(run(TG "fetch hf:form/m"), 1), says("x is in a file without a plain name");
  put_text("form/m/model.safetensors.index.json", "{\"weight_map\": {\"x\": \"c.safetensors\"}}");
  assert_int_equal(run(TG "fetch hf:form/m"), 1), says("c.safetensors is missing");
  put_text("form/m/model.safetensors.index.json", "[]");
  assert_int_equal(run(TG "fetch hf:form/m"), 1), says("this is no index of weights");
  put_text("form/none/README.md", "no model");
  assert_int_equal(run(TG "fetch hf:form/none"), 1), says("has neither a gguf file nor config.json"),
      says("README.md");
}

/* What reads pictures comes with a model that has it, if the command can show pictures. */
static void test_pictures(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  put("blind/m/m.gguf", false);
  put("sees/m/m-Q8_0.gguf", false);
  put("sees/m/mmproj-BF16.gguf", false);
  put("sees/m/mmproj-F16.gguf", true);
  put("sees/m/mmproj-F32.gguf", true);
  assert_int_equal(run(TG "embed hf:sees/m text && ls " MODELS "sees/m"), 0), says_not("mmproj");
  assert_int_equal(run(TG "run hf:sees/m 2>&1; ls " MODELS "sees/m"), 0), says_not("mmproj");
  assert_int_equal(run(TG "run hf:sees/m --mmproj none --prompt Once --tokens 4 && ls " MODELS "sees/m"), 0);
  says_not("mmproj");
  assert_int_equal(run(TG "run hf:sees/m --prompt Once --tokens 4"),
                   1); /* a language model reads no pictures */
  says("downloading mmproj-F16.gguf"), says("sees/m/mmproj-F16.gguf reads pictures for it"), says("(mmproj)");
  assert_int_equal(run("rm hub/sees/m/mmproj-F16.gguf; " TG "fetch hf:sees/m --json"), 0);
  says("\"mmproj\":\""), says("mmproj-BF16.gguf\"}"); /* the smallest */
  assert_int_equal(run(TG "run small.gguf --mmproj hf:sees/m:F32 --prompt Once"), 1), says("mmproj-F32.gguf");
  assert_int_equal(run(TG "run small.gguf --mmproj hf:blind/m --prompt Once"), 1);
  says("hf:blind/m has no mmproj file");
}

/* `tg info --models` lists what is whole on this disk, by the names that commands take. */
static void test_models(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  put("list/m/a-Q8_0.gguf", false);
  put("list/m/b-F16.gguf", true);
  put("list/m/mmproj.gguf", true);
  put("list/parts/m-00001-of-00002.gguf", false);
  put("list/parts/m-00002-of-00002.gguf", false);
  put_text("list/form/config.json", "{}");
  put_text("list/form/model.safetensors", "12345678");
  assert_int_equal(run("export TG_MODELS=listed; " TG "info --models && for m in m parts form; do " TG
                       "fetch hf:list/$m || exit; done 2> /dev/null"),
                   0);
  assert_int_equal(run("TG_MODELS=listed " TG "info --models"), 0);
  assert_string_equal(text, "models by name, in listed:\n"
                            "10 B        hf:list/form\n"
                            "336.41 KiB  hf:list/m:a-Q8_0.gguf\n"
                            "672.81 KiB  hf:list/parts:m-00001-of-00002.gguf\n");
  assert_int_equal(run("rm listed/list/parts/*2-of*; mkdir listed/.x listed/list/y; TG_MODELS=listed " TG
                       "info --models --json"),
                   0);
  assert_string_equal(text, "{\"model\":\"hf:list/form\",\"bytes\":10}\n"
                            "{\"model\":\"hf:list/m:a-Q8_0.gguf\",\"bytes\":344480}\n");
  assert_int_equal(run(TG "info --models small.gguf"), 2), says("cannot both be");
}

/* ---- transfers */
static void test_cut_off(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  put("cut/m/m.gguf", true); /* each connection ends after 400,000 bytes */
  assert_int_equal(run(TG "fetch hf:cut/m && cmp large.gguf " MODELS "cut/m/m.gguf && ls " MODELS "cut/m"),
                   0);
  says("m.gguf: the connection ended; going on"), says_not(".part");
  assert_int_equal(run("grep -o 'bytes=.*' requests | sort -u"), 0);
  assert_string_equal(text, "bytes=400000-\nbytes=800000-\n");
  /* a server that knows no ranges sends it all again */
  put("whole/m/m.gguf", true);
  assert_int_equal(run("s=$(sha256sum large.gguf | head -c 12); mkdir -p " MODELS
                       "whole/m; head -c 5000 large.gguf > " MODELS "whole/m/m.gguf.$s.part; " TG
                       "fetch hf:whole/m && cmp large.gguf " MODELS "whole/m/m.gguf"),
                   0);
  /* a part that is longer than the file, and one that is whole */
  assert_int_equal(run("s=$(sha256sum large.gguf | head -c 12); cd " MODELS "whole/m; cat m.gguf m.gguf > "
                       "m.gguf.$s.part; rm m.gguf; " TG "fetch hf:whole/m && cmp m.gguf %s/large.gguf",
                       folder),
                   0);
  assert_int_equal(
      run("s=$(sha256sum large.gguf | head -c 12); cd " MODELS "whole/m; mv m.gguf m.gguf.$s.part; : > "
          "%s/requests; " TG "fetch hf:whole/m && cmp m.gguf %s/large.gguf && ! grep resolve %s/requests",
          folder, folder, folder),
      0);
}

static void test_wrong(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  put("wrong/m/m.gguf", false);
  assert_int_equal(run(TG "run hf:wrong/m --prompt x"), 1), says("has the sum "),
      says("tg fetch hf:wrong/m asks the hub for its files anew");
  assert_int_equal(run("ls " MODELS "wrong/m"), 0), says_not("m.gguf");
  put("more/m/m.gguf", false);
  assert_int_equal(run(TG "fetch hf:more/m"), 1), says("the server sends more than 336.41 KiB");
  put("full/m/m.gguf", true);
  assert_int_equal(run("trap '' XFSZ; ulimit -f 300; " TG "fetch hf:full/m"), 1), says("File too large");
  assert_int_equal(run(TG "fetch hf:full/m && cmp large.gguf " MODELS "full/m/m.gguf"), 0);
  assert_int_equal(run("grep -c 'full.*bytes=' requests"), 0); /* it went on from what was written */
  assert_int_equal(run("mkdir shut; chmod 500 shut; [ $(id -u) = 0 ] || TG_MODELS=shut " TG
                       "fetch hf:full/m; code=$?; "
                       "[ $(id -u) = 0 ] || [ $code = 1 ]"),
                   0);
  assert_int_equal(run("TG_MODELS=small.gguf " TG "fetch hf:full/m"), 1), says("small.gguf");
}

/* Two processes that want the same file get it, and it is downloaded once. Ctrl-C leaves what is there. */
static void test_together(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  put("slow/m/m.gguf", true);
  assert_int_equal(run(TG "fetch hf:slow/m & one=$!; " TG
                          "fetch hf:slow/m & two=$!; wait $one && wait $two && "
                          "cmp large.gguf " MODELS "slow/m/m.gguf"),
                   0);
  says("another process downloads it; waiting");
  assert_int_equal(run("ls " MODELS "slow/m; grep -c 'data /slow' requests"), 0), says("m.gguf\n1\n");
  assert_int_equal(
      run("rm " MODELS "slow/m/m.gguf; " TG "fetch hf:slow/m & sleep 0.5; kill -INT $!; wait $!"), 130);
  says("interrupted; the next call goes on");
  assert_int_equal(run(TG "fetch hf:slow/m && cmp large.gguf " MODELS "slow/m/m.gguf"), 0);
}

/* ---- who may have what */
static void test_token(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  put("hidden/m/m.gguf", false);
  assert_int_equal(run(TG "fetch hf:hidden/m"), 1), says("set HF_TOKEN");
  assert_int_equal(run("HF_TOKEN=hf_other " TG "fetch hf:hidden/m"), 1), says("HF_TOKEN does not open it"),
      says_not("hf_other");
  assert_int_equal(run("HF_TOKEN=hf_secret " TG "fetch hf:hidden/m"), 0);
  assert_int_equal(run("grep -c '^hub .*Bearer hf_secret' requests"), 0); /* the listing and the file */
  assert_string_equal(text, "2\n");
  assert_int_equal(run("grep -c '^data .* - -' requests && ! grep '^data .*Bearer' requests"), 0);
  assert_int_equal(run("HF_TOKEN='a\nX-Y: z' " TG "fetch hf:hidden/m"), 1), says("HF_TOKEN is no token");
  assert_int_equal(run("grep -r hf_secret " MODELS), 1); /* it is kept nowhere */
  assert_int_equal(run(TG "fetch hf:own/nothing"), 1), says("404"), says("own/nothing"),
      says("no such model");
  assert_int_equal(run("HF_ENDPOINT=http://127.0.0.1:1 " TG "run hf:far/m --prompt x"), 1), says("127.0.0.1");
  assert_int_equal(run("HF_ENDPOINT=file:///etc " TG "fetch hf:far/m"), 1), says("HF_ENDPOINT=file:///etc");
  assert_int_equal(run("unset XDG_CACHE_HOME HOME; " TG "fetch hf:far/m"), 1), says("TG_MODELS");
}

/* ---- names and listings that mean harm */
static void test_hostile(void **state) {
  (void)state;
  if (!hub_is_there()) skip();
  static const char *const names[] = {"hf:",      "hf:a",       "hf:/a",      "hf:a/",      "hf:a/b/c",
                                      "hf:../b",  "hf:a/..",    "hf:.a/b",    "hf:a/b:",    "hf:a/b:../c",
                                      "hf:a b/c", "hf:a/b?x=1", "hf:a/b:c:d", "hf:a/%2e%2e"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_int_equal(run(TG "run '%s' --prompt x", names[i]), 2);
    says("a model's name is hf:OWNER/REPO");
  }
  assert_int_equal(run(TG "fetch hf:$(printf 'a%%.0s' $(seq 300))/b"), 2), says("a model's name");
  put("hostile/m/m-Q8_0.gguf", false);
  put("hostile/m/z.gguf", false);
  assert_int_equal(run(TG "fetch hf:hostile/m:nothing"), 1), says("m-Q8_0.gguf"), says("z.gguf");
  static const char *const bad[] = {"evil", "hidden", "a b", "huge", "minus", "real",
                                    "none", "sum",    "lfs", "xxx",  "%"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    says_not(bad[i]);
  assert_int_equal(run("! grep '^data /api' requests"), 0); /* the next page was said to be at another port */
  assert_int_equal(run("find /tmp -maxdepth 4 -name 'evil*' 2> /dev/null"), 0);
  assert_string_equal(text, "");
  assert_int_equal(run(TG "fetch hf:broken/deep"), 1), says("this is no listing of files");
  assert_int_equal(run(TG "fetch hf:broken/object"), 1), says("no list");
  assert_int_equal(run(TG "fetch hf:broken/half"), 1), says("this is no listing of files");
  assert_int_equal(run(TG "fetch hf:long/m"), 1), says("the server sends more than 32.00 MiB");
  put("endless/m/m.gguf", false);
  assert_int_equal(run(TG "fetch hf:endless/m"), 1), says("the listing does not end");
  /* a kept listing that someone has changed is read by the same rules; one that is none is asked for again */
  put("kept/m/m.gguf", false);
  assert_int_equal(run(TG "fetch hf:kept/m && cd " MODELS
                          "kept/m && echo '{\"../../evil.gguf\":{\"size\":1}}' > "
                          ".listing.json && " TG "info hf:kept/m"),
                   1);
  says("no files");
  assert_int_equal(run("echo '{' > " MODELS "kept/m/.listing.json; " TG "info hf:kept/m"), 0);
}

/* ---- the hub */
static int begin(void **state) {
  (void)state;
  const char *own = getenv("TG_DATA");
  char *data = realpath(own && *own ? own : "../shared/data", NULL);
  if (!mkdtemp(folder)) return -1;
  if (!data || run("cp '%s/stories260K/stories260K-q8_0.gguf' small.gguf && cp "
                   "'%s/stories260K/stories260K-f32.gguf' large.gguf && chmod 600 *.gguf && mkdir hub",
                   data, data))
    missing = "no stories260K in the shared data";
  else if (run("command -v python3"))
    missing = "no python3 here, which the hub is written in";
  else if (run(TG "fetch file:///dev/null --out nothing") && strstr(text, "without libcurl"))
    missing = "built without libcurl";
  else if (run(TG "fetch hf:a/b") && strstr(text, "jansson"))
    missing = "built without jansson";
  free(data);
  if (missing) return 0;
  run("python3 '" TG_TESTS
      "/files/hub.py' > /dev/null 2> errors & echo $! > pid; for i in $(seq 100); do [ -f "
      "port ] && break; sleep 0.1; done; cat port");
  port = atoi(text);
  return port > 0 ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  run("[ ! -f pid ] || kill $(cat pid)");
  return run("rm -rf '%s'", folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_command), cmocka_unit_test(test_fetch),   cmocka_unit_test(test_choice),
      cmocka_unit_test(test_pieces),      cmocka_unit_test(test_folder),  cmocka_unit_test(test_pictures),
      cmocka_unit_test(test_cut_off),     cmocka_unit_test(test_wrong),   cmocka_unit_test(test_together),
      cmocka_unit_test(test_token),       cmocka_unit_test(test_hostile), cmocka_unit_test(test_models)};
  cmocka_set_test_filter(getenv("TG_TEST"));
  return cmocka_run_group_tests(tests, begin, end);
}
