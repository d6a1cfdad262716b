/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the command line and of what is written from its table. */
#include "ref/base/options.h"
#include "ref/base/unit.h"

static bool verbose;
static const char *target, *format;
static int64_t seed;
static struct moon_option_list only;

static const struct moon_option options[] = {
    {.name = "verbose", .kind = MOON_OPTION_FLAG, .into = &verbose, .help = "Tell more"},
    {.name = "target",
     .kind = MOON_OPTION_TEXT,
     .into = &target,
     .value = "TARGET",
     .help = "What is tested; ref unless given"},
    {.name = "seed",
     .kind = MOON_OPTION_INTEGER,
     .into = &seed,
     .value = "N",
     .min = -5,
     .max = INT64_MAX,
     .help = "Number that all random choices follow from. The same seed gives the same run, byte for byte, on every "
             "machine"},
    {.name = "only",
     .kind = MOON_OPTION_LIST,
     .into = &only,
     .value = "GLOB",
     .help = "Cases to run; all unless given"},
    {.name = "a-rather-long-format",
     .kind = MOON_OPTION_CHOICE,
     .into = &format,
     .value = "NAME",
     .choices = "terminal|tap|junit",
     .help = "How results are written"},
    {0},
};
static const struct moon_option no_options[] = {{0}};

static const struct moon_command commands[] = {
    {.name = "vectors",
     .operands = "FILE|DIR...",
     .summary = "Checks answers against recorded vectors",
     .details = "Reads every file. A backslash \\ and \"quotes\" are nothing special.\n\n"
                ".A second paragraph begins with a dot.\n'A line begins with a quote.",
     .options = options,
     .operands_min = 1,
     .operands_max = -1},
    {.name = "compat",
     .operands = "A B",
     .summary = "Compares two deployments",
     .options = no_options,
     .operands_min = 2,
     .operands_max = 2},
    {.name = "list", .operands = "", .summary = "Lists the cases", .options = options, .operands_max = 0},
    {.name = "lint", .operands = "[FILE]", .summary = "Looks", .options = no_options, .operands_max = 1},
    {0},
};

/* Parses words that are separated by single spaces; leaves the operands, joined, in `seen`, or the error. */
static char seen[MOON_ERROR_MESSAGE_BYTES];
static int parse(const struct moon_command *command, const char *line) {
    static char words[512];
    char *argv[128];
    const char *operands[128];
    int argc = 0, count = -1;
    struct moon_error error = {0};
    verbose = false;
    target = format = "";
    seed = 0;
    only.count = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    int rc = moon_options_parse(command, argc, argv, operands, &count, &error);
    seen[0] = '\0';
    for (int i = 0; !rc && i < count; i++)
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s%s", i ? "," : "", operands[i]);
    if (rc) {
        MOON_CHECK_TEXT(error.where, command->name);
        snprintf(seen, sizeof seen, "%s", error.message);
    }
    return rc;
}

static void check_refused(const struct moon_command *command, const char *line, int rc, const char *message) {
    MOON_CHECK_INT(parse(command, line), rc);
    MOON_CHECK_TEXT(seen, message);
}

static void every_kind_is_parsed(void) {
    MOON_CHECK_INT(
        parse(commands, "a --verbose --target x --seed=12 b --only 1 --only=2 --a-rather-long-format tap - c"), 0);
    MOON_CHECK_TEXT(seen, "a,b,-,c");
    CU_ASSERT(verbose);
    MOON_CHECK_TEXT(target, "x");
    MOON_CHECK_INT(seed, 12);
    MOON_CHECK_INT(only.count, 2);
    MOON_CHECK_TEXT(only.values[1], "2");
    MOON_CHECK_TEXT(format, "tap");
    MOON_CHECK_INT(parse(commands, "a --verbose=false --target= --seed -5 --a-rather-long-format=junit"), 0);
    CU_ASSERT(!verbose);
    MOON_CHECK_TEXT(target, "");
    MOON_CHECK_INT(seed, -5);
    MOON_CHECK_TEXT(format, "junit");
    MOON_CHECK_INT(parse(commands, "a --verbose=true --target=a=b --seed 9223372036854775807"), 0);
    CU_ASSERT(verbose);
    MOON_CHECK_TEXT(target, "a=b");
    CU_ASSERT_EQUAL(seed, INT64_MAX);
}

static void two_dashes_end_the_options(void) {
    MOON_CHECK_INT(parse(commands, "a -- --verbose -- -x"), 0);
    MOON_CHECK_TEXT(seen, "a,--verbose,--,-x");
    CU_ASSERT(!verbose);
}

static void unknown_options_are_refused_with_a_suggestion(void) {
    check_refused(commands, "a --vebose", MOON_ERR_SCHEMA, "unknown option --vebose; did you mean --verbose?");
    check_refused(commands, "a --tagret=x", MOON_ERR_SCHEMA, "unknown option --tagret; did you mean --target?");
    check_refused(commands, "a --target_x_y_z", MOON_ERR_SCHEMA, "unknown option --target_x_y_z");
    check_refused(commands, "a --verb", MOON_ERR_SCHEMA, "unknown option --verb");
    check_refused(commands, "a -seed 1", MOON_ERR_SCHEMA, "unknown option -seed; did you mean --seed?");
    check_refused(commands, "a -xseed 1", MOON_ERR_SCHEMA, "unknown option -xseed; did you mean --seed?");
    check_refused(commands, "a ---", MOON_ERR_SCHEMA, "unknown option ---");
    check_refused(commands, "a --=x", MOON_ERR_SCHEMA, "unknown option --");
    check_refused(&commands[1], "--verbose a b", MOON_ERR_SCHEMA, "unknown option --verbose");
    char line[300] = "--", message[400];
    memset(line + 2, 'x', 200);
    snprintf(message, sizeof message, "unknown option %s", line);
    check_refused(commands, line, MOON_ERR_SCHEMA, message);
}

static void values_are_checked(void) {
    check_refused(commands, "a --target", MOON_ERR_SCHEMA, "--target needs a value: TARGET");
    check_refused(commands, "a --target --verbose", MOON_ERR_SCHEMA,
                  "--target needs a value; if \"--verbose\" is meant, write --target=--verbose");
    MOON_CHECK_INT(parse(commands, "a --target=--verbose"), 0);
    check_refused(commands, "a --verbose=maybe", MOON_ERR_SCHEMA,
                  "--verbose takes no value but true or false, not \"maybe\"");
    check_refused(commands, "a --target 1 --target 2", MOON_ERR_SCHEMA, "--target is given twice");
    check_refused(commands, "a --verbose --verbose", MOON_ERR_SCHEMA, "--verbose is given twice");
    check_refused(commands, "a --a-rather-long-format tab", MOON_ERR_SCHEMA,
                  "--a-rather-long-format is one of terminal|tap|junit, not \"tab\"; did you mean tap?");
    check_refused(commands, "a --a-rather-long-format xml", MOON_ERR_SCHEMA,
                  "--a-rather-long-format is one of terminal|tap|junit, not \"xml\"");
}

static void integers_are_decimal_and_within_their_range(void) {
    static const char *const wrong[] = {"", "-", "x", "1x", "+1", "0x10", "1.0", "--1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char line[64], message[128];
        snprintf(line, sizeof line, "a --seed=%s", wrong[i]);
        snprintf(message, sizeof message, "--seed takes a whole number, not \"%s\"", wrong[i]);
        check_refused(commands, line, MOON_ERR_SCHEMA, message);
    }
    check_refused(commands, "a --seed -6", MOON_ERR_RANGE, "--seed is -6, must be within -5 and 9223372036854775807");
    check_refused(commands, "a --seed 9223372036854775808", MOON_ERR_RANGE,
                  "--seed is 9223372036854775808, must be within -5 and 9223372036854775807");
    check_refused(commands, "a --seed -9223372036854775809", MOON_ERR_RANGE,
                  "--seed is -9223372036854775809, must be within -5 and 9223372036854775807");
    check_refused(commands, "a --seed 99999999999999999999999", MOON_ERR_RANGE,
                  "--seed is 99999999999999999999999, must be within -5 and 9223372036854775807");
    int64_t small = 0;
    const struct moon_option bounded[] = {
        {.name = "n", .kind = MOON_OPTION_INTEGER, .into = &small, .value = "N", .min = 1, .max = 3, .help = ""}, {0}};
    const struct moon_command command = {.name = "c", .operands = "", .summary = "", .options = bounded};
    MOON_CHECK_INT(parse(&command, "--n 3"), 0);
    MOON_CHECK_INT(small, 3);
    MOON_CHECK_INT(parse(&command, "--n 4"), MOON_ERR_RANGE);
    MOON_CHECK_INT(small, 3);
}

static void a_list_has_room_for_64(void) {
    char word[] = "--only=x";
    char *argv[MOON_OPTION_LIST_MAX + 1];
    const char *operands[MOON_OPTION_LIST_MAX + 1];
    int count;
    struct moon_error error;
    for (int i = 0; i <= MOON_OPTION_LIST_MAX; i++)
        argv[i] = word;
    only.count = 0;
    MOON_CHECK_INT(moon_options_parse(&commands[2], 64, argv, operands, &count, &error), 0);
    only.count = 0;
    MOON_CHECK_INT(moon_options_parse(&commands[2], 65, argv, operands, &count, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "--only is given more than 64 times");
}

static void operands_are_counted(void) {
    check_refused(commands, "--verbose", MOON_ERR_SCHEMA, "needs at least FILE|DIR...");
    check_refused(&commands[1], "a", MOON_ERR_SCHEMA, "needs A B");
    check_refused(&commands[1], "a b c", MOON_ERR_SCHEMA, "takes only A B, not 3 operands");
    check_refused(&commands[2], "a", MOON_ERR_SCHEMA, "takes none, not 1 operand");
    MOON_CHECK_INT(parse(&commands[1], "a b"), 0);
    MOON_CHECK_INT(parse(&commands[2], ""), 0);
    MOON_CHECK_INT(parse(&commands[3], "x"), 0);
}

static void help_lists_options_in_columns(void) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_options_usage("mooncheck", commands, &text);
    MOON_CHECK_TEXT(moon_text_value(&text),
                    "Usage: mooncheck vectors [OPTION]... FILE|DIR...\n"
                    "\n"
                    "Checks answers against recorded vectors\n"
                    "\n"
                    "Reads every file. A backslash \\ and \"quotes\" are nothing special.\n"
                    "\n"
                    ".A second paragraph begins with a dot.\n"
                    "'A line begins with a quote.\n"
                    "\n"
                    "Options:\n"
                    "  --verbose             Tell more\n"
                    "  --target TARGET       What is tested; ref unless given\n"
                    "  --seed N              Number that all random choices follow from. The same\n"
                    "                        seed gives the same run, byte for byte, on every machine\n"
                    "  --only GLOB           Cases to run; all unless given\n"
                    "  --a-rather-long-format NAME\n"
                    "                        How results are written\n"
                    "                        terminal|tap|junit\n");
    moon_text_clear(&text);
    moon_options_usage("mooncheck", &commands[1], &text);
    MOON_CHECK_TEXT(moon_text_value(&text), "Usage: mooncheck compat A B\n\nCompares two deployments\n");
    moon_text_clear(&text);
    moon_options_usage("mooncheck", &commands[2], &text);
    CU_ASSERT(strncmp(moon_text_value(&text), "Usage: mooncheck list [OPTION]...\n", 34) == 0);
    moon_text_close(&text);
}

static void the_overview_lists_commands(void) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_options_overview("mooncheck", commands, &text);
    MOON_CHECK_TEXT(moon_text_value(&text), "Usage: mooncheck COMMAND [OPTION]... [OPERAND]...\n"
                                            "\n"
                                            "Commands:\n"
                                            "  vectors               Checks answers against recorded vectors\n"
                                            "  compat                Compares two deployments\n"
                                            "  list                  Lists the cases\n"
                                            "  lint                  Looks\n"
                                            "\n"
                                            "\"mooncheck COMMAND --help\" tells the options of a command.\n");
    moon_text_close(&text);
}

static bool contains(const struct moon_text *text, const char *part) {
    bool found = strstr(moon_text_value(text), part) != NULL;
    if (!found)
        fprintf(stderr, "not found: %s\n", part);
    return found;
}

static void the_man_page_escapes_what_roff_would_eat(void) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_options_man("mooncheck-x", "checks stores", commands, &text);
    CU_ASSERT(contains(&text, "\n.Dt MOONCHECK-X 1\n"));
    CU_ASSERT(contains(&text, "\n.Nm mooncheck-x\n.Nd checks stores\n"));
    CU_ASSERT(contains(&text, "Reads every file.\nA backslash \\e and \"quotes\" are nothing special.\n.Pp\n"
                              "\\&.A second paragraph begins with a dot.\n\\&'A line begins with a quote.\n"));
    CU_ASSERT(contains(&text, "\n.It Fl Fl target Ar \"TARGET\"\n"));
    CU_ASSERT(contains(&text, "\n.It Fl Fl verbose\nTell more.\n"));
    CU_ASSERT(contains(&text, "One of\n.Ql \"terminal|tap|junit\" .\n"));
    moon_text_close(&text);
}

static void completion_offers_commands_options_choices_and_files(void) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_options_completion("mooncheck-x", commands, &text);
    CU_ASSERT(contains(&text, "_mooncheck_x()\n"));
    CU_ASSERT(contains(&text, "--help vectors compat list lint'"));
    CU_ASSERT(contains(&text, "--a-rather-long-format) words='terminal tap junit' ;;"));
    CU_ASSERT(contains(&text, "complete -F _mooncheck_x mooncheck-x\n"));
    moon_text_close(&text);
}

static void writing_survives_every_refusal(void) {
    for (uint64_t n = 1;; n++) {
        struct moon_memory_failing failing;
        struct moon_text text;
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_text_open(&text, &failing.memory);
        moon_options_man("m", "s", commands, &text);
        moon_options_usage("m", commands, &text);
        moon_options_overview("m", commands, &text);
        moon_options_completion("m", commands, &text);
        bool failed = text.failed;
        CU_ASSERT(failed == (failing.requests >= n));
        moon_text_close(&text);
        MOON_CHECK_INT(failing.held_bytes, 0);
        if (!failed)
            break;
    }
}

/* Given "man" or "completion", prints that of the table above, for mandoc -T lint and bash -n to look at. */
static int print(const char *what) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    if (strcmp(what, "--man") == 0)
        moon_options_man("mooncheck", "checks stores", commands, &text);
    else
        moon_options_completion("mooncheck", commands, &text);
    int status = fputs(moon_text_value(&text), stdout) < 0;
    moon_text_close(&text);
    return status;
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"every kind is parsed", every_kind_is_parsed},
        {"two dashes end the options", two_dashes_end_the_options},
        {"unknown options are refused with a suggestion", unknown_options_are_refused_with_a_suggestion},
        {"values are checked", values_are_checked},
        {"integers are decimal and within their range", integers_are_decimal_and_within_their_range},
        {"a list has room for 64", a_list_has_room_for_64},
        {"operands are counted", operands_are_counted},
        {"help lists options in columns", help_lists_options_in_columns},
        {"the overview lists commands", the_overview_lists_commands},
        {"the man page escapes what roff would eat", the_man_page_escapes_what_roff_would_eat},
        {"completion offers commands, options, choices and files",
         completion_offers_commands_options_choices_and_files},
        {"writing survives every refusal", writing_survives_every_refusal},
        {0},
    };
    if (argc == 2 && (strcmp(argv[1], "--man") == 0 || strcmp(argv[1], "--completion") == 0))
        return print(argv[1]);
    return moon_unit_main("options", cases, argc, argv);
}
