# SPDX-License-Identifier: Apache-2.0
# Turns the schema files named on the command line into a C table: awk -f embed.awk *.schema.json > schemas.c
BEGIN {
    print "/* Made by conformance/schema/embed.awk. */"
    print "#include \"conformance/schema.h\"\n"
    print "const struct moon_schema_text moon_schema_texts[] = {"
}
FNR == 1 {
    name = FILENAME
    sub(/.*\//, "", name)
    sub(/\.schema\.json$/, "", name)
    printf "%s    {\"%s\",", NR == 1 ? "" : "},\n", name
}
{
    gsub(/\\/, "&&")
    gsub(/"/, "\\\"")
    printf "\n     \"%s\\n\"", $0
}
END { print "},\n    {0, 0},\n};" }
