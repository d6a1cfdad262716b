/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the listing of pre-images: every byte told, nothing malformed accepted. */
#include "ref/hash/annotate.h"

#include "ref/base/unit.h"

static struct moon_text out;

static int annotate(enum moon_serialisation serialisation, const char *hex) {
    uint8_t bytes[256];
    MOON_CHECK_INT(moon_hex_decode(hex, strlen(hex), bytes), 0);
    moon_text_open(&out, moon_memory_heap());
    return moon_annotate(serialisation, bytes, strlen(hex) / 2, &out);
}

static void check(enum moon_serialisation serialisation, const char *hex, const char *expected) {
    MOON_CHECK_INT(annotate(serialisation, hex), 0);
    MOON_CHECK_TEXT(moon_text_value(&out), expected);
    moon_text_close(&out);
}

static void pickles(void) {
    check(MOON_PICKLE, "8005950d0000000000000043026162944b0785944e87942e",
          "       0  8005                        pickle, protocol 5\n"
          "       2  950d00000000000000          frame of 13 bytes\n"
          "      11  43026162                    bytes, 2: parent hash 6162\n"
          "      15  94                          memo 0\n"
          "      16  4b07                        token 7\n"
          "      18  85                          tuple of 1: the tokens\n"
          "      19  94                          memo 1\n"
          "      20  4e                          None\n"
          "      21  87                          tuple of 3\n"
          "      22  94                          memo 2\n"
          "      23  2e                          end\n");
}

static void cbors(void) {
    check(MOON_CBOR, "8342616282071818f6",
          "       0  83                          array of 3\n"
          "       1  426162                      bytes, 2: parent hash 6162\n"
          "       4  82                          array of 2: the tokens\n"
          "       5  07                          token 7\n"
          "       6  1818                        token 24\n"
          "       8  f6                          null: None\n");
    check(MOON_CBOR, "8163c3a922",
          "       0  81                          array of 1\n"
          "       1  63c3a922                    string of 3 bytes \"\\xc3\\xa9\\x22\"\n");
}

/* One example of each element, all well-formed. */
static void all_elements(void) {
    static const char *const pickle[] = {
        "8005292e",   /* empty tuple */
        "80054bff2e", /* ints of each width */
        "80054dffff2e",
        "80054affffffff2e",
        "80058a0500000080002e",
        "80058a0a000000000000000000802e",
        "80058b0200000001802e",
        "80058c0094680086942e", /* reference */
        "80058c00946a0000000086942e",
        "8005580100000061942e",
        "8005420100000061942e",
        "80058c03225c7f942e",
        "8005284b014b014b014b0174942e",
        "80058c296161616161616161616161616161616161616161616161616161616161616161616161616161616161942e",
    };
    static const char *const cbor[] = {"f6",
                                       "00",
                                       "20",
                                       "1818",
                                       "190100",
                                       "1a00010000",
                                       "1b0000000100000000",
                                       "1bffffffffffffffff",
                                       "3bffffffffffffffff",
                                       "3818",
                                       "80",
                                       "8180",
                                       "814100",
                                       "60",
                                       "c249010000000000000000",
                                       "c349010000000000000000",
                                       "8342010281018163616263"};
    for (size_t i = 0; i < sizeof pickle / sizeof *pickle; i++) {
        MOON_CHECK_INT(annotate(MOON_PICKLE, pickle[i]), 0);
        moon_text_close(&out);
    }
    for (size_t i = 0; i < sizeof cbor / sizeof *cbor; i++) {
        MOON_CHECK_INT(annotate(MOON_CBOR, cbor[i]), 0);
        moon_text_close(&out);
    }
}

static void malformed(void) {
    static const char *const pickle[] = {"",
                                         "80",
                                         "8004",
                                         "80058005",
                                         "8005",
                                         "80052e",
                                         "80054e4e2e",
                                         "80054e2e00",
                                         "8005ff",
                                         "800594",
                                         "80056800",
                                         "800585",
                                         "800574",
                                         "800528292e",
                                         "80058a00",
                                         "80058a0200",
                                         "80058c0561",
                                         "80059503000000000000004e942e",
                                         "80059504000000000000004e2e",
                                         "8005950400000000000000950400000000000000",
                                         "80059504000000000000004a000000002e",
                                         "80052828282828282828282828282828282828",
                                         "80056a00000000"};
    static const char *const cbor[] = {"",
                                       "18",
                                       "1817",
                                       "1900ff",
                                       "1a0000ffff",
                                       "1b00000000ffffffff",
                                       "1c",
                                       "a0",
                                       "c0",
                                       "e0",
                                       "f5",
                                       "4201",
                                       "8200",
                                       "0000",
                                       "9bffffffffffffffff",
                                       "818181818181818181818181818181818181f6"};
    for (size_t i = 0; i < sizeof pickle / sizeof *pickle; i++) {
        MOON_CHECK_INT(annotate(MOON_PICKLE, pickle[i]), MOON_ERR_SYNTAX);
        CU_ASSERT(strstr(moon_text_value(&out), "not well-formed\n") != NULL);
        moon_text_close(&out);
    }
    for (size_t i = 0; i < sizeof cbor / sizeof *cbor; i++) {
        MOON_CHECK_INT(annotate(MOON_CBOR, cbor[i]), MOON_ERR_SYNTAX);
        moon_text_close(&out);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {{"a pickle is listed opcode by opcode", pickles},
                                                  {"a CBOR item is listed head by head", cbors},
                                                  {"every element that the writers know is read back", all_elements},
                                                  {"cut, contradictory and foreign bytes are refused", malformed},
                                                  {NULL, NULL}};
    return moon_unit_main("annotate", cases, argc, argv);
}
