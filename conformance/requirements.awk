# SPDX-License-Identifier: Apache-2.0
# Turns the requirement blocks of SPEC.md into a C table and refuses malformed ones: awk -f requirements.awk SPEC.md
# A block is "### HASH-012 (MUST) Title", then "- profiles:", "- provenance:", "- source:", "- vectors:" in any order, then text.

function fault(text) {
    printf "%s:%d: %s\n", FILENAME, block_line ? block_line : FNR, text > "/dev/stderr"
    faults++
}
function quoted(text) {
    gsub(/\\/, "&&", text)
    gsub(/"/, "\\\"", text)
    return "\"" text "\""
}
# First and last release line of "vllm-0.24 to vllm-0.33" or "vllm-0.33" (its minor numbers), "all" for every one. Rules of
# Mooncake releases ("mooncake-0.3.12 to mooncake-0.3.13") hold whatever vLLM is beside them.
function minor_range(text,   ends) {
    if (text == "all" || text ~ /^mooncake-0\.3\.[0-9]+( to mooncake-0\.3\.[0-9]+)?$/)
        return "0, 999"
    if (text !~ /^vllm-0\.[0-9]+( to vllm-0\.[0-9]+)?$/) {
        fault(id ": profiles \"" text "\" is none of: all, vllm-0.N, vllm-0.N to vllm-0.M, mooncake-0.3.N, mooncake-0.3.N to mooncake-0.3.M")
        return "0, 0"
    }
    gsub(/vllm-0\./, "", text)
    split(text, ends, / to /)
    return ends[1] ", " (text ~ / to / ? ends[2] : ends[1])
}
# The public reports among the sources: parts between semicolons that hold "#123".
function reports_of(text,   parts, count, i, found) {
    count = split(text, parts, /; */)
    for (i = 1; i <= count; i++)
        if (parts[i] ~ /#[0-9]/)
            found = found (found == "" ? "" : "; ") parts[i]
    return found
}
function finish(   name, count, globs, i) {
    if (id == "")
        return
    for (i = 1; i <= field_count; i++)
        if (!((name = field_names[i]) in field))
            fault(id ": the line \"- " name ":\" is missing")
    if (!text_seen)
        fault(id ": has no text")
    if (!((field["provenance"]) in provenances))
        fault(id ": provenance \"" field["provenance"] "\" is none of: documented, all releases measured, one release measured, ours")
    else if (level == "MUST" && !provenances[field["provenance"]])
        fault(id ": a MUST needs the provenance documented or all releases measured, not \"" field["provenance"] "\"")
    rows = rows "    {" quoted(id) ", " quoted(level) ", " quoted(title) ",\n     " quoted(field["provenance"]) ", " \
        quoted(field["profiles"]) ",\n     " quoted(field["source"]) ",\n     " \
        quoted(reports_of(field["source"])) ", " minor_range(field["profiles"]) ",\n     {"
    count = 0
    if (field["vectors"] !~ /^none/) {
        count = split(field["vectors"], globs, /[ \t]+/)
        for (i = 1; i <= count; i++)
            if (globs[i] !~ /^[A-Za-z0-9_.*?-]+$/)
                fault(id ": \"" globs[i] "\" is no glob over kinds")
        for (i = 1; i <= count; i++)
            rows = rows quoted(globs[i]) ", "
    }
    if (count > 32)
        fault(id ": over 32 globs")
    rows = rows "NULL}},\n"
    total++
    id = ""
}
BEGIN {
    field_count = split("profiles provenance source vectors", field_names, " ")
    for (i = 1; i <= field_count; i++)
        is_field[field_names[i]] = 1
    provenances["documented"] = 1
    provenances["all releases measured"] = 1
    provenances["one release measured"] = 0
    provenances["ours"] = 0
}
/^```/ { fenced = !fenced }
fenced { text_seen = 1; next }
/^#/ { finish() }
/^### [A-Z]/ {
    block_line = FNR
    for (name in field)
        delete field[name]
    text_seen = 0
    id = $2
    level = $3
    title = $0
    sub(/^### [^ ]+ [^ ]+ */, "", title)
    if (id !~ /^[A-Z][A-Z0-9]*-[0-9][0-9][0-9]$/)
        fault("\"" id "\" is no requirement id such as HASH-012")
    if (level !~ /^\((MUST|SHOULD|MAY|ALT)\)$/)
        fault(id ": level \"" level "\" is none of (MUST) (SHOULD) (MAY) (ALT)")
    if (title == "")
        fault(id ": has no title")
    if (id in seen)
        fault(id ": already used in line " seen[id])
    seen[id] = FNR
    gsub(/[()]/, "", level)
    next
}
id != "" && /^- [a-z]+:/ {
    name = $2
    sub(/:$/, "", name)
    value = $0
    sub(/^- [a-z]+:[ \t]*/, "", value)
    sub(/[ \t]+$/, "", value)
    if (name in is_field) {
        if (name in field)
            fault(id ": the line \"- " name ":\" is there twice")
        if (value == "")
            fault(id ": the line \"- " name ":\" is empty")
        field[name] = value
        next
    }
}
id != "" && NF > 0 { text_seen = 1 }
END {
    finish()
    block_line = 0
    if (total == 0)
        fault("holds no requirement")
    if (faults)
        exit 1
    print "/* Made by conformance/requirements.awk. */"
    print "#include \"conformance/requirements.h\"\n"
    printf "const struct moon_requirement moon_requirements[] = {\n%s};\n", rows
    printf "const size_t moon_requirements_count = %d;\n", total
}
