/* test_base.c: arenas, maps, strings, digests and the names of variables, beside a plain model of each. */
#include "base/base.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#ifdef __linux__
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

static unsigned drawn(unsigned *seed) { return *seed = *seed * 1664525u + 1013904223u, *seed >> 8; }

/* Pieces of every size stand apart, aligned and zeroed, and keep what is written to them. */
static void test_arena(void **state) {
  (void)state;

  enum { PIECES = 600 };

  unsigned char *piece[PIECES];
  size_t size[PIECES];
  unsigned seed = 7;
  TgMem mem = {0};
  Arena a;
  arena_init(&a, &mem);
  for (int turn = 0; turn < 3; turn++) {
    for (int i = 0; i < PIECES; i++) {
      size[i] = i < 64 ? (size_t)i : drawn(&seed) % (i % 50 ? 300 : 40000);
      assert_non_null(piece[i] = arena_alloc(&a, size[i]));
      assert_int_equal((uintptr_t)piece[i] % 16, 0);
      for (size_t k = 0; k < size[i]; k++)
        assert_int_equal(piece[i][k], 0);
      memset(piece[i], i % 255 + 1, size[i]);
    }
    for (int i = 0; i < PIECES; i++)
      for (size_t k = 0; k < size[i]; k++)
        assert_int_equal(piece[i][k], i % 255 + 1);
    arena_reset(&a);
    assert_int_equal(mem.live, 1); /* one block stays warm */
  }
  assert_null(arena_alloc(&a, SIZE_MAX / 2 + 1));
  assert_string_equal(arena_printf(&a, "%s %d", "text", 12), "text 12");
  assert_string_equal(arena_strdup(&a, ""), "");
  arena_free(&a);
  assert_int_equal(mem.live, 0);
}

/* A byte that is not of a piece is known to the sanitizer, in a block that is used and after a reset; and
 * what an array has room for. */
static void test_bounds(void **state) {
  (void)state;
#if BOUNDS_ARE_WATCHED
  Arena a;
  arena_init(&a, NULL);
  for (size_t n = 0; n < 100; n++) {
    char *p = arena_alloc(&a, n);
    for (size_t k = 0; k < n; k++)
      assert_false(__asan_address_is_poisoned(p + k));
    for (size_t k = n; k < (n + 15) / 16 * 16 + ARENA_GAP; k++)
      assert_true(__asan_address_is_poisoned(p + k));
  }
  char *kept = arena_alloc(&a, 40);
  arena_reset(&a);
  assert_true(__asan_address_is_poisoned(kept));
  arena_free(&a);
  Vec(int) v = {0};
  for (int i = 0; i < 100; i++) {
    assert_true(vec_push(NULL, &v, i));
    for (int k = 0; k <= i; k++)
      assert_int_equal(v.at[k], k);
    if (v.len < v.cap) assert_true(__asan_address_is_poisoned(v.at + v.len));
  }
  assert_true(vec_reserve(NULL, &v, 120));
  for (int i = 100; i < 120; i++)
    v.at[i] = i;
  assert_true(__asan_address_is_poisoned(v.at + 120));
  vec_free(NULL, &v);
#else
  print_message("skipped: no AddressSanitizer here\n");
  skip();
#endif
}

/* Random puts and drops beside an array: keys that fall on one place, 0, and both ends. */
static void test_map(void **state) {
  (void)state;

  enum { KEYS = 97, STEPS = 20000 };

  static const uint64_t far[] = {0, UINT64_MAX, INT64_MAX, 1};
  uint64_t key[KEYS], want[KEYS] = {0}, got;
  bool has[KEYS] = {false};
  size_t n = 0;
  unsigned seed = 3;
  TgMem mem = {0};
  Map m;
  map_init(&m, &mem);
  for (int i = 0; i < KEYS; i++)
    key[i] = i < 4 ? far[i] : (uint64_t)i * 0x1000003u;
  for (int step = 0; step < STEPS; step++) {
    unsigned i = drawn(&seed) % KEYS, how = drawn(&seed) % (step / 2000 % 2 ? 3 : 2);
    if (how == 0) {
      assert_true(map_put(&m, key[i], (uint64_t)step));
      n += !has[i], has[i] = true, want[i] = (uint64_t)step;
    } else if (how == 1)
      map_drop(&m, key[i]), n -= has[i], has[i] = false;
    if (step % 5000 == 4999) map_clear(&m), memset(has, 0, sizeof has), n = 0;
    assert_int_equal(m.len, n);
    for (int k = 0; k < KEYS; k++) {
      assert_int_equal(map_get(&m, key[k], &got), has[k]);
      if (has[k]) assert_int_equal(got, want[k]);
    }
  }
  map_free(&m);
  assert_false(map_get(&m, 0, &got));
  map_drop(&m, 0);
  assert_int_equal(mem.live, 0);
}

static void test_strings(void **state) {
  (void)state;
  static const int64_t number[] = {0,  1,   -1,        9,         10,        -10,
                                   99, 100, INT32_MIN, INT64_MAX, INT64_MIN, INT64_MIN + 1};
  char want[4000] = "";
  TgMem mem = {0};
  Str s;
  str_init(&s, &mem);
  assert_string_equal(str_text(&s), "");
  for (int turn = 0; turn < 12; turn++) {
    size_t n = strlen(want);
    snprintf(want + n, sizeof want - n, "%lld, %s%05d;", (long long)number[turn], "word", turn);
    str_int(&s, number[turn]), str_putn(&s, ", ignored", 2), str_put(&s, "word"),
        str_printf(&s, "%05d;", turn);
    assert_string_equal(str_text(&s), want);
    assert_int_equal(s.len, strlen(want));
  }
  str_free(&s);
  for (size_t n = 1; n < 1100; n++) { /* the end of a text falls on each side of what there is room for */
    str_init(&s, &mem);
    for (size_t k = 0; k < n; k++)
      str_putn(&s, "x", 1);
    assert_int_equal(strlen(str_text(&s)), n);
    str_free(&s);
  }
  mem.fail_at = mem.calls + 1;
  str_put(&s, "lost");
  assert_true(s.oom && !*str_text(&s));
  str_put(&s, "lost, too");
  assert_true(s.oom && !*str_text(&s));
  assert_int_equal(mem.live, 0);
}

/* Of 'a' so many times, around the ends of blocks, as Python's hashlib gives them. */
static void test_sha256(void **state) {
  (void)state;

  static const struct {
    size_t n;
    const char *digest;
  } known[] = {{0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
               {1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"},
               {55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
               {56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a"},
               {57, "f13b2d724659eb3bf47f2dd6af1accc87b81f09f59f2b75e5c0bed6589dfe8c6"},
               {63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34"},
               {64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
               {65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"},
               {119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb"},
               {120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c"},
               {128, "6836cf13bac400e9105071cd6af47084dfacad4e5e302c94bfed24e013afb73e"},
               {200, "c2a908d98f5df987ade41b5fce213067efbcc21ef2240212a41e54b5e7c28ae5"}};

  for (size_t i = 0; i < TG_COUNT(known); i++) {
    uint8_t of[32], text[200];
    char hex[65];
    memset(text, 'a', sizeof text);
    sha256(text, known[i].n, of);
    for (int k = 0; k < 32; k++)
      snprintf(hex + 2 * k, 3, "%02x", of[k]);
    assert_string_equal(hex, known[i].digest);
  }
}

/* A digest is of every byte, and of how many there are. */
static void test_hash(void **state) {
  (void)state;

  enum { MOST = 40 };

  uint8_t text[MOST] = {0};
  Map seen;
  uint64_t v;
  map_init(&seen, NULL);
  for (size_t n = 0; n <= MOST; n++) {
    uint64_t plain = hash_bytes(1, text, n);
    assert_int_equal(plain, hash_bytes(1, text, n));
    assert_int_not_equal(plain, hash_bytes(2, text, n));
    assert_false(map_get(&seen, plain, &v));
    map_put(&seen, plain, 1);
    for (size_t k = 0; k < n; k++) {
      text[k] ^= 1;
      uint64_t h = hash_bytes(1, text, n);
      assert_false(map_get(&seen, h, &v));
      map_put(&seen, h, 1);
      text[k] ^= 1;
    }
  }
  map_free(&seen);
}

/* Each name once, in a row that begins at 0 and ends with NULL. */
static void test_variables(void **state) {
  (void)state;
  int n = 0;
  assert_null(env_name(-1));
  for (; env_name(n); n++)
    for (int k = 0; k < n; k++)
      assert_string_not_equal(env_name(k), env_name(n));
  assert_string_equal(env_name(0), "TG_DEV");
  assert_true(n > 15);
  assert_null(env_name(n + 1));
}

/* Where the system does not tell which cores there are, none is named and one is counted. */
static void test_cores_untold(void **state) {
  (void)state;
#ifdef __linux__
  enum { REFUSED = 3 };

  struct sock_filter ask[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getaffinity, 0, 1),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                              BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog filter = {sizeof ask / sizeof *ask, ask};
  assert_true(core_at(0) >= 0);
  pid_t child = fork();
  if (!child) {
    bool set =
        !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
    if (!set) _exit(REFUSED);
    bool ok = cpu_count() == 1;
    for (int k = 0; k < 64; k++)
      ok = ok && core_at(k) == -1;
    _exit(!ok);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == REFUSED) {
    print_message("skipped: no leave to filter system calls here\n");
    skip();
  }
  assert_int_equal(WEXITSTATUS(status), 0);
#else
  print_message("skipped: Linux's way to refuse a system call\n");
  skip();
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_arena),     cmocka_unit_test(test_bounds),
                                     cmocka_unit_test(test_map),       cmocka_unit_test(test_strings),
                                     cmocka_unit_test(test_sha256),    cmocka_unit_test(test_hash),
                                     cmocka_unit_test(test_variables), cmocka_unit_test(test_cores_untold)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
