/* test_hash.c: Keccak beside digests that Python's hashlib gives of the bytes (37 i + 11) mod 256: lengths on
 * both sides of a block's end, batches, other dtypes; and the tree of a whole tensor. */
#include "tg.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static const struct {
  const char *name;
  int n;
  const char *digest;
} known[] = {
    {"sha3_224", 1, "32a1705829fd73451324b467aca5b07819fcebe68f2a10a0910724d4"},
    {"sha3_224", 136, "0e5dd7905f31fb9a09c8045d2c01e3fa4cb02280b14a5a767878ac25"},
    {"sha3_224", 400, "d7f2471274ae17b4b4ad8c48912fab52625fa3d1bd6e7f75db0bc7fa"},
    {"sha3_256", 1, "962f8420917d7fa5479f4a767bf9b9a30a4ab377af26d72dbcff167d6ce3f6f5"},
    {"sha3_256", 71, "0ac3a06a527eab9ecf5919ebe035b8c8149ba22ccaf469a1f1c50e7184d913e4"},
    {"sha3_256", 72, "401dd44fde549e7492a9fd98636f2628017afe9e9fa097d68c2826cf8a1b6d44"},
    {"sha3_256", 135, "3aa81a5b233ce753b2ab56b3c922338134eb11b8dc3d877d0bc8d19751684b76"},
    {"sha3_256", 136, "9f065722983c1b643b3fabbed6e791f6d74f77e6cf5a2d38c07c124465ed5d9f"},
    {"sha3_256", 168, "7e8b80b812f0f04e0fa496af6ee58dffdf39d2ec1703b100ff54375840040505"},
    {"sha3_256", 400, "9b5d3bfd110847522583cc5d72c768d7aeadee3be0ad523fe11b4437a72ca098"},
    {"sha3_384", 1,
     "9b0446ad3c50f45c08cd3ca2484f7519c8b8a3a7d1c535e5e33d079a6e3c4062acc4f460111f94ac2695eb9463c29b71"},
    {"sha3_384", 136,
     "2fba408057cdb4914bb92224158f9ecba7d126cbf1d2b169cc86828de457e542e515940319f7a94da44c867683d8f031"},
    {"sha3_384", 400,
     "4d1c20cc972b4cb27845d7075b9d778307e9309809960cae0103ba0957d30538033a5ce689cf88f10e815a5bb8d0b742"},
    {"sha3_512", 1,
     "f2ce06537b57df321b623522d6cd5a09a6fd85c65ddf058827c52589ef632e2a6d49d473496f15a84322ccb05b7594be00dfb77"
     "8091abad5b172ee963dfe2777"},
    {"sha3_512", 71,
     "bf5828621a2ea8d1d96d5a0100852a995705cd5a60bf13e8d5161dd8fc051f0a51c5c0cae86438659f1a0fb30efc8a1ed01a837"
     "fd93725245f24f3efcc79e1de"},
    {"sha3_512", 72,
     "7163023fb85589362e8f184399accaa14e0d17da87dcc69cece725c9bef23b0e4dfb12ed015213d3e6f5c5cc98f23c20303dd5a"
     "2091df35815f5f242e7a9bfeb"},
    {"sha3_512", 135,
     "005f39bf14bf6415e8fefc32818ed75fe9b3d699d7ec433aa9c1a6eadda13b5dbafdd891e8479c18e35d5900574cacafd738147"
     "318247e3801390b03b8197024"},
    {"sha3_512", 136,
     "fb248e7301ec5132372ef30c98b0da3d1c32aa9d9bd72a976fc5c707443ea92951487b9f7112a8c53b87b95701a6a1fadcbf97d"
     "9330ec919f04397bec7098aa4"},
    {"sha3_512", 168,
     "03585f36d49cbeb997c3745da9250decc6aa01d3139fc3e648e99dc45e8f29b5fb3f3943315b464325c34413d04231ddde05c44"
     "f7ec1b78e6c23670021a04ff8"},
    {"sha3_512", 400,
     "42e7b8086860dbc06707121cac65f6dc7623e8ed0c68eed7f826f9dee76d55d54f909cff938526590befd19f1168c8a238d97bd"
     "ddaeeb85f8599f371c46023eb"},
    {"shake_128", 1, "965e6070bf20c4f407ed231d82437a1f"},
    {"shake_128", 136, "c5c2d088bd2e20dda99724f9d95fe709"},
    {"shake_128", 400, "f1b0d657120cffe4371314d02c4af60d"},
    {"shake_256", 1, "eff575e75502a07a1dcf57937dfd53a90073659eededed0b7e6f6ebb886d39ad"},
    {"shake_256", 136, "579616897b9db8dc567cd07f9b81d4e4a2d823203b5ae45e9d285fd909705860"},
    {"shake_256", 400, "8cd221f9a5d2775d2a053ecc8d59df5eb068b432ce35a7d228c4035a29b0dd8c"},
};

static TgContext *open_on(const char *device) {
  return tg_open(&(TgOpenOptions){.size = sizeof(TgOpenOptions), .device = device});
}

static void message(uint8_t *to, int n) {
  for (int i = 0; i < n; i++)
    to[i] = (uint8_t)(37 * i + 11);
}

static const char *hex(TgContext *c, TgTensor *t) {
  static char text[600];
  uint8_t bytes[256];
  size_t n = tg_nbytes(t);
  if (!t || n > sizeof bytes || tg_read(t, bytes, n)) fail_msg("%s", tg_errmsg(c));
  for (size_t i = 0; i < n; i++)
    snprintf(text + 2 * i, 3, "%02x", bytes[i]);
  return text;
}

static void test_keccak(void **state) {
  (void)state;
  uint8_t m[400];
  message(m, 400);
  TgContext *c = open_on("INTERP");
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    TG_SCOPE(c) {
      const char *got = hex(c, tg_keccak(tg_from_bytes(c, m, (size_t)known[i].n, TG_U8), known[i].name));
      if (strcmp(got, known[i].digest)) fail_msg("%s of %d bytes: %s", known[i].name, known[i].n, got);
    }
  /* rows of a batch are messages; an f32 is four bytes; a sponge by its numbers is the one of that name */
  TgTensor *rows = tg_reshape(tg_from_bytes(c, m, 6 * 4 * 4, TG_F32), TG_SHAPE(2, 3, 4));
  TgTensor *d = tg_keccak(rows, "sha3_256");
  assert_true(tg_ndim(d) == 3 && tg_dim(d, 2) == 32 && tg_dtype(d) == TG_U8);
  char one[100];
  snprintf(one, sizeof one, "%s", hex(c, tg_keccak(tg_from_bytes(c, m + 5 * 16, 16, TG_U8), "136,6")));
  assert_string_equal(hex(c, tg_contiguous(tg_select(tg_select(d, 0, 1), 0, 2))), one);
  assert_null(tg_keccak(d, "md5"));
  assert_int_equal(tg_error(c), TG_ERR_VALUE), tg_clear_error(c);
  assert_null(tg_keccak(d, "201,6"));
  assert_int_equal(tg_error(c), TG_ERR_VALUE), tg_clear_error(c);
  assert_null(tg_keccak(tg_zeros(c, TG_SHAPE(2, 0), .dtype = TG_U8), "sha3_256"));
  assert_int_equal(tg_error(c), TG_ERR_SHAPE), tg_clear_error(c);
  tg_close(c);
}

static void test_tree(void **state) {
  (void)state;
  uint8_t m[400];
  message(m, 400);
  TgContext *c = open_on("CPU");
  assert_string_equal(hex(c, tg_hash(tg_from_bytes(c, m, 400, TG_F32))), "4fb6141acefef93f91b412026060bcf8");
  tg_close(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_keccak), cmocka_unit_test(test_tree)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
