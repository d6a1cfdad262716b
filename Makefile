# SPDX-License-Identifier: Apache-2.0
# Builds, checks and installs mooncheck. `make help` lists the targets; V=1 shows the commands.
BUILD ?= build
VARIANT ?= gcc
PREFIX ?= /usr/local
DESTDIR ?=
TARGET ?= ref
V ?= 0
# As many jobs as there are cores, unless -j says otherwise.
JOBS := $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))
MAKEFLAGS += $(JOBS) --no-builtin-rules
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-9s %s\n' '$(1)' '$(2)';)

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wformat=2 -Wundef \
            -Wpointer-arith -Wwrite-strings
CPPFLAGS_ALL := -I. -D_GNU_SOURCE $(CPPFLAGS)
CFLAGS_ALL := -std=c11 -g -fno-strict-aliasing $(WARNINGS) $(if $(WERROR),-Werror) $(CFLAGS)
LIBS := -lcrypto -lxxhash -lzstd -lz

# Packages come before anything is built, but only the targets that a person types to get everything ask for them.
DEPS_FIRST := $(if $(filter run,$(MAKECMDGOALS)),deps-run) $(if $(filter check check-full,$(MAKECMDGOALS)),deps-check)

# One line a variant: compiler, flags.
VARIANTS := gcc clang gcc-O0 gcc-O3 asan ubsan tsan coverage
CC_gcc := gcc
FLAGS_gcc := -O2
CC_clang := clang
FLAGS_clang := -O2
CC_gcc-O0 := gcc
FLAGS_gcc-O0 := -O0
CC_gcc-O3 := gcc
FLAGS_gcc-O3 := -O3
CC_asan := clang
FLAGS_asan := -O1 -fno-omit-frame-pointer -fsanitize=address
CC_ubsan := clang
FLAGS_ubsan := -O1 -fsanitize=undefined,integer -fno-sanitize=unsigned-integer-overflow,unsigned-shift-base,implicit-conversion -fno-sanitize-recover=all
CC_tsan := clang
FLAGS_tsan := -O1 -fsanitize=thread
CC_coverage := gcc
FLAGS_coverage := -O0 --coverage
CC_fuzz := clang
FLAGS_fuzz := -O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all

SOURCES := $(sort $(wildcard ref/*/*.c sim/*.c conformance/*/*.c reports/*.c conformance/*.c))
TESTS := $(filter %_test.c,$(SOURCES))
FUZZERS := $(filter %_fuzz.c,$(SOURCES))
UNIT := ref/base/unit.c
MAINS := conformance/cli/main.c conformance/cli/report_main.c conformance/adapters/example.c ref/daemon/master_main.c \
         ref/daemon/client_main.c ref/daemon/rdma_main.c
VERSION := $(shell sed -n 's/.define MOON_VERSION "\(.*\)"/\1/p' ref/base/version.h)
LIBRARY := $(filter-out $(TESTS) $(FUZZERS) $(UNIT) $(MAINS),$(SOURCES))
# Folders in link order: a folder uses only those after it.
FOLDERS := conformance/cli conformance/worlds conformance/checkers conformance conformance/draw conformance/suites reports sim \
           ref/daemon ref/store ref/transfer ref/fabric ref/engine ref/connector ref/config ref/layout ref/hash ref/key ref/wire ref/base
# What the folders that touch the operating system need besides.
FABRIC_LIBS := -luv -libverbs

define variant
$(BUILD)/$(1)/obj/%.o: %.c | $(DEPS_FIRST)
	$$(Q)mkdir -p $$(@D)
	$$(call say,CC $(1),$$<) $$(CC_$(1)) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) $$(FLAGS_$(1)) -MMD -MP -c $$< -o $$@
$(foreach f,$(FOLDERS),
$(BUILD)/$(1)/lib/$(f).a: $(patsubst %.c,$(BUILD)/$(1)/obj/%.o,$(foreach s,$(LIBRARY),$(if $(filter $(f)/,$(dir $(s))),$(s))))
	$$(Q)mkdir -p $$(@D) && rm -f $$@ && ar rcs $$@ $$^
)
$(BUILD)/$(1)/obj/gen/%.o: $(BUILD)/gen/%.c | $(DEPS_FIRST)
	$$(Q)mkdir -p $$(@D)
	$$(call say,CC $(1),$$<) $$(CC_$(1)) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) $$(FLAGS_$(1)) -MMD -MP -c $$< -o $$@
$(BUILD)/$(1)/obj/conformance/deviations.o: conformance/deviations.json
$(BUILD)/$(1)/lib/conformance.a: $(BUILD)/$(1)/obj/gen/requirements.o $(BUILD)/$(1)/obj/gen/schemas.o
$(BUILD)/$(1)/test/%: $(BUILD)/$(1)/obj/%.o $(BUILD)/$(1)/obj/ref/base/unit.o
	$$(Q)mkdir -p $$(@D)
	$$(call say,LD $(1),$$@) $$(CC_$(1)) $$(FLAGS_$(1)) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group $$(LIBS) $$(if $$(filter ref/daemon/% ref/fabric/%,$$*),$$(FABRIC_LIBS)) -lcunit
$(BUILD)/$(1)/mooncheck: $(BUILD)/$(1)/obj/conformance/cli/main.o $(FOLDERS:%=$(BUILD)/$(1)/lib/%.a)
	$$(call say,LD $(1),$$@) $$(CC_$(1)) $$(FLAGS_$(1)) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group $$(LIBS)
$(foreach d,master client rdma,
$(BUILD)/$(1)/mooncheck-$(d): $(BUILD)/$(1)/obj/ref/daemon/$(d)_main.o $(foreach f,reports ref/daemon ref/fabric ref/store ref/transfer ref/wire ref/base,$(BUILD)/$(1)/lib/$(f).a)
	$$(call say,LD $(1),$$@) $$(CC_$(1)) $$(FLAGS_$(1)) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group $$(LIBS) -luv $(if $(filter rdma,$(d)),-libverbs)
)
$(BUILD)/$(1)/mooncheck-report: $(BUILD)/$(1)/obj/conformance/cli/report_main.o $(BUILD)/$(1)/lib/conformance/cli.a $(BUILD)/$(1)/lib/conformance.a $(BUILD)/$(1)/lib/reports.a $(BUILD)/$(1)/lib/ref/base.a
	$$(call say,LD $(1),$$@) $$(CC_$(1)) $$(FLAGS_$(1)) -o $$@ $$^ $$(LIBS)
$(BUILD)/$(1)/mooncheck-adapter-example: $(BUILD)/$(1)/obj/conformance/adapters/example.o $(foreach f,conformance/suites ref/engine ref/connector ref/config ref/layout ref/hash ref/key ref/base,$(BUILD)/$(1)/lib/$(f).a)
	$$(call say,LD $(1),$$@) $$(CC_$(1)) $$(FLAGS_$(1)) -o $$@ $$^ $$(LIBS)
endef
$(foreach v,$(VARIANTS) fuzz,$(eval $(call variant,$(v))))

# What a unit test links: its own folder and all after it in FOLDERS.
after = $(if $(filter $(1),$(firstword $(2))),$(2),$(if $(2),$(call after,$(1),$(wordlist 2,99,$(2)))))
define test_links
$(foreach v,$(VARIANTS),
$(BUILD)/$(v)/test/$(1:.c=): $(foreach f,$(call after,$(patsubst %/,%,$(dir $(1))),$(FOLDERS)),$(BUILD)/$(v)/lib/$(f).a))
endef
$(foreach t,$(TESTS),$(eval $(call test_links,$(t))))
define fuzz_links
$(BUILD)/fuzz/bin/$(1:.c=): $(BUILD)/fuzz/obj/$(1:.c=.o) $(foreach f,$(call after,$(patsubst %/,%,$(dir $(1))),$(FOLDERS)),$(BUILD)/fuzz/lib/$(f).a)
	$$(Q)mkdir -p $$(@D)
	$$(call say,LD fuzz,$$@) $$(CC_fuzz) -fsanitize=fuzzer,address,undefined -o $$@ $$^ $$(LIBS) $(if $(filter ref/daemon/% ref/fabric/%,$(1)),$$(FABRIC_LIBS))
endef
$(foreach t,$(FUZZERS),$(eval $(call fuzz_links,$(t))))

# The requirements table comes from the specification, the schemas from their JSON files.
$(BUILD)/gen/requirements.c: conformance/SPEC.md conformance/requirements.awk | $(DEPS_FIRST)
	$(Q)mkdir -p $(@D)
	$(call say,GEN,$@) awk -f conformance/requirements.awk conformance/SPEC.md > $@.part && mv $@.part $@
$(BUILD)/gen/schemas.c: conformance/schema/embed.awk $(sort $(wildcard conformance/schema/*.schema.json)) | $(DEPS_FIRST)
	$(Q)mkdir -p $(@D)
	$(call say,GEN,$@) awk -f $^ > $@.part && mv $@.part $@

# Mutants are patches on a copy of the sources; the harness must notice each. Only what a patch touches is compiled anew, the
# rest comes from the gcc-O0 build: patched objects stand before the archives, so the archives' own are not taken.
MUTANT_FLAGS := $(FLAGS_gcc-O0) -w
MUTANT_REST := $(BUILD)/gcc-O0/obj/conformance/adapters/example.o \
               $(foreach f,conformance/suites ref/engine ref/connector ref/config ref/layout ref/hash ref/key ref/base,$(BUILD)/gcc-O0/lib/$(f).a)
MUTANT_PROGRAM := $(BUILD)/gcc-O0/obj/conformance/cli/main.o $(FOLDERS:%=$(BUILD)/gcc-O0/lib/%.a)
$(BUILD)/mutants/%/mooncheck-adapter-example: conformance/mutants/%.patch conformance/mutants/build.sh $(MUTANT_REST) $(MUTANT_PROGRAM)
	$(call say,MUTANT,$*) conformance/mutants/build.sh $< $(@D) gcc -std=c11 $(CPPFLAGS_ALL) $(MUTANT_FLAGS) -- $(MUTANT_REST) $(LIBS) -- $(MUTANT_PROGRAM) $(LIBS)
MUTANTS := $(patsubst conformance/mutants/%.patch,$(BUILD)/mutants/%/mooncheck-adapter-example,$(wildcard conformance/mutants/*.patch))

.SECONDARY:
.DELETE_ON_ERROR:
.PHONY: all run check check-full deps deps-run deps-check deps-goldens test unit asan ubsan tsan valgrind coverage mutants lint bench fuzz goldens \
        install uninstall clean help
.DEFAULT_GOAL := all

# ---- use
DAEMONS := mooncheck-master mooncheck-client mooncheck-rdma
all: $(foreach p,mooncheck mooncheck-report mooncheck-adapter-example $(DAEMONS),$(BUILD)/gcc/$(p)) ## build the programs (build/gcc/mooncheck)

SEED_MUTANT := $(BUILD)/mutants/seed-as-number/mooncheck-adapter-example # a case of hash.processes asks it
RUN_ADAPTERS := $(foreach v,gcc-O0 gcc-O3 clang,$(BUILD)/$(v)/mooncheck-adapter-example)
run: deps-run all $(RUN_ADAPTERS) $(SEED_MUTANT) ## judge TARGET (ref) against recorded releases; report: build/report/index.html
	$(Q)conformance/checks/run.sh $(BUILD) '$(TARGET)'

install: all ## install under $(DESTDIR)$(PREFIX): programs, headers and library, pkg-config file, man page, completion
	$(Q)mkdir -p $(BUILD)/install
	$(Q)$(BUILD)/gcc/mooncheck man > $(BUILD)/install/mooncheck.1
	$(Q)$(BUILD)/gcc/mooncheck completion > $(BUILD)/install/mooncheck.bash
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' '' 'Name: mooncheck' \
	    'Description: reference implementation of a Mooncake store connector: hashes, keys, layouts, configuration' \
	    'Version: $(VERSION)' 'Requires.private: libcrypto libxxhash' 'Cflags: -I$${includedir}/mooncheck' \
	    'Libs: -L$${libdir} -lmooncheck -lcrypto -lxxhash' > $(BUILD)/install/mooncheck.pc
	$(Q)rm -f $(BUILD)/install/libmooncheck.a && ar rcs $(BUILD)/install/libmooncheck.a \
	    $(patsubst %.c,$(BUILD)/gcc/obj/%.o,$(filter-out ref/daemon/%,$(filter ref/%,$(LIBRARY))))
	$(Q)install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/share/man/man1 \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(Q)install -m 755 $(foreach p,mooncheck mooncheck-report $(DAEMONS),$(BUILD)/gcc/$(p)) $(DESTDIR)$(PREFIX)/bin/
	$(Q)install -m 644 $(BUILD)/install/libmooncheck.a $(DESTDIR)$(PREFIX)/lib/
	$(Q)install -m 644 $(BUILD)/install/mooncheck.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig/
	$(Q)install -m 644 $(BUILD)/install/mooncheck.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	$(Q)install -m 644 $(BUILD)/install/mooncheck.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/mooncheck
	$(Q)for h in $(filter-out ref/base/unit.h ref/daemon/% %/fuzz_object.h %_internal.h,$(wildcard ref/*/*.h)); do \
	    install -D -m 644 $$h $(DESTDIR)$(PREFIX)/include/mooncheck/$$h || exit 1; done
uninstall: ## remove what install put there
	$(Q)rm -rf $(DESTDIR)$(PREFIX)/include/mooncheck $(DESTDIR)$(PREFIX)/lib/libmooncheck.a \
	    $(DESTDIR)$(PREFIX)/lib/pkgconfig/mooncheck.pc $(DESTDIR)$(PREFIX)/share/man/man1/mooncheck.1 \
	    $(DESTDIR)$(PREFIX)/share/bash-completion/completions/mooncheck \
	    $(foreach p,mooncheck mooncheck-report $(DAEMONS),$(DESTDIR)$(PREFIX)/bin/$(p))

BENCH_PYTHON = $(if $(wildcard $(BUILD)/deps/venv/bin/python),--python $(BUILD)/deps/venv/bin/python)
bench: all ## measure hashing and the connector beside libcrypto, memory and Python
	$(Q)mkdir -p $(BUILD)/bench
	$(Q)$(BUILD)/gcc/mooncheck bench hash $(BENCH_PYTHON) --out $(BUILD)/bench/hash.md
	$(Q)$(BUILD)/gcc/mooncheck bench connector $(BENCH_PYTHON) --out $(BUILD)/bench/connector.md

# ---- check
CHECK_VARIANTS := gcc clang asan ubsan tsan coverage
PROGRAMS = $(foreach v,$(CHECK_VARIANTS),$(foreach p,mooncheck mooncheck-adapter-example,$(BUILD)/$(v)/$(p)) $(TESTS:%.c=$(BUILD)/$(v)/test/%)) \
           $(foreach v,gcc asan,$(foreach p,mooncheck-report $(DAEMONS),$(BUILD)/$(v)/$(p))) $(RUN_ADAPTERS) \
           $(foreach v,gcc-O0 gcc-O3,$(BUILD)/$(v)/mooncheck) $(MUTANTS) $(FUZZERS:%.c=$(BUILD)/fuzz/bin/%)
check: deps-check $(PROGRAMS) ## everything CI runs: slices with time budgets (ONLY="unit vectors" for some)
	$(Q)BUILD=$(BUILD) MOONCHECK_LOGS=$(BUILD)/check conformance/checks/slices.sh conformance/checks/check.slices $(ONLY)
check-full: deps-check $(PROGRAMS) ## everything at full length; results in reports/full
	$(Q)conformance/checks/full.sh $(BUILD) $(ONLY)

test: $(TESTS:%.c=$(BUILD)/$(VARIANT)/test/%) ## unit tests of one build (VARIANT=gcc)
	$(Q)conformance/checks/units.sh $(BUILD)/$(VARIANT)
unit: $(BUILD)/$(VARIANT)/test/$(T) ## one unit test: T=ref/hash/pickle_test, VARIANT=asan
	$(Q)$< $(ONLY)
define sanitizer
$(1): $(BUILD)/$(1)/mooncheck $(TESTS:%.c=$(BUILD)/$(1)/test/%) ## unit tests and vectors under that sanitizer
	$$(Q)conformance/checks/units.sh $(BUILD)/$(1)
	$$(Q)$(BUILD)/$(1)/mooncheck vectors fixtures/vectors
endef
# asan ubsan tsan: ## unit tests and vectors under that sanitizer
$(foreach v,asan ubsan tsan,$(eval $(call sanitizer,$(v))))
valgrind: $(TESTS:%.c=$(BUILD)/gcc/test/%) ## unit tests under valgrind
	$(Q)conformance/checks/units.sh $(BUILD)/gcc valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=all
coverage: $(BUILD)/coverage/mooncheck $(TESTS:%.c=$(BUILD)/coverage/test/%) ## gcovr report: build/coverage/report/index.html
	$(Q)conformance/checks/coverage.sh $(BUILD)
mutants: all $(RUN_ADAPTERS) $(MUTANTS) ## broken copies of the reference, each of which the vectors must notice
	$(Q)conformance/checks/mutants.sh $(BUILD)
lint: ## clang-format, clang-tidy, cppcheck, include graph, rules of the tree
	$(Q)conformance/checks/lint.sh $(BUILD)
	$(Q)conformance/checks/includes.sh
	$(Q)conformance/checks/tidy_tree.sh
fuzz: $(FUZZERS:%.c=$(BUILD)/fuzz/bin/%) ## build the fuzzers and run each for SECONDS (60)
	$(Q)conformance/checks/fuzz.sh $(BUILD) $(or $(SECONDS),60) $(ONLY)
# A version that was typed (`make goldens VERSION=0.33.0`), not this program's own.
RECORD := $(if $(filter command line,$(origin VERSION)),$(VERSION))
goldens: all ## record the vectors of VERSION=0.33.0 anew from the real release (fetched by make deps-goldens VERSION=) and compare
	$(Q)for version in $(or $(RECORD),$(notdir $(wildcard $(BUILD)/deps/vllm/*.*.*))); do \
	    [ -d $(BUILD)/deps/vllm/$$version ] || { echo "goldens: vLLM $$version is not here: make deps-goldens VERSION=$$version" >&2; exit 2; }; \
	    $(BUILD)/deps/venv/bin/python conformance/adapters/vllm/record.py --sources $(BUILD)/deps/vllm --vectors fixtures/vectors $$version || exit 1; done

# ---- dependencies (the only targets that fetch)
deps: deps-check ## install and fetch everything
deps-run: ## what `make run` needs: a few Debian packages
	$(Q)conformance/deps.sh run $(BUILD)
deps-check: ## what `make check` needs: Debian packages, vLLM releases from PyPI (pinned, cached in build/deps)
	$(Q)conformance/deps.sh check $(BUILD)

deps-goldens: ## a vLLM release for `make goldens`: VERSION=0.34.0
	$(Q)conformance/adapters/vllm/fetch.sh $(BUILD)/deps $(RECORD)

clean: ## remove build/ but keep fetched releases (build/deps)
	$(Q)find $(BUILD) -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} +

help: ## this list
	@awk -F ':.*## ' '/^# ---- /{ printf "\n%s\n", substr($$0, 8) } /^(# )?[a-z][a-z -]*:.*## /{ sub(/^# /, "", $$1); printf "  make %-18s %s\n", $$1, $$2 }' Makefile

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
