# Thin front of CMake. `make demo` and `make test` install what they need, build, and run.
BUILD ?= build
JOBS  ?= $(shell nproc)
.PHONY: all setup demo check test check-all golden parity docs python check-rules check-accuracy check-compilers check-kernel-compilers check-asan check-tsan check-arm64 check-macos check-emu bench gpu-check metal-check fuzz torture clean
all: setup
	@cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=RelWithDebInfo > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS) > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
setup:
	@tools/setup
demo: all
	@$(BUILD)/tg demo $(ARGS)
# make check: unit tests, rules, golden texts, INTERP: a minute or two. make check T=test_gradient: it alone is built and run; T="test_symbolic@METAL
# check_format": by device, and a check of tools/run-tests
check: $(if $(T),setup,all)
ifdef T
	@[ -f $(BUILD)/CMakeCache.txt ] || cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=RelWithDebInfo > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS) --target $(or $(sort $(filter-out check_%,$(foreach t,$(T),$(firstword $(subst @, ,$(t)))))),all) > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@tools/run-tests $(BUILD) one $(T)
else
	@tools/run-tests $(BUILD) check
endif
test: all
	@tools/run-tests $(BUILD) test
check-all: all   # every test there is: what CI runs
	@tools/run-tests $(BUILD) all
parity: all   # rewrites docs/api-parity.md from its table, the headers and the tests
	@$(BUILD)/parity .
docs: all   # docs/, the reference of the headers and the commands as static pages with search, and man pages; needs python3
	@python3 tools/docs/site.py $(BUILD) $(BUILD)/docs
python: all   # build/python/tinygrad_c, the Python package with its libraries inside, and a wheel for pip; needs python3
	@python3 tools/python/package.py $(BUILD)
golden: all   # rewrites the golden kernels and the blocks of docs/; look at their diff
	@TG_GOLDEN=write $(BUILD)/test_kernels && TG_GOLDEN=write $(BUILD)/test_choices && TG_GOLDEN=write $(BUILD)/test_tour
check-rules: all
	@$(BUILD)/checkrules $(BUILD)/rules.verdicts
check-accuracy: all   # the math functions on all 2^32 floats: minutes
	@printf '%s\n' EXP2 EXP LOG2 LOG SIN COS TAN erf tanh sigmoid softplus gelu | xargs -P $(JOBS) -I F env STRIDE=1 ONLY=F $(BUILD)/test_accuracy 2>&1 | grep -E '(graph|composite) .* f32|FAILED|ERROR|ulp at'
check-kernel-compilers: all   # the tests on the CPU with the kernels compiled by each of these, where it is here
	@tools/run-tests $(BUILD) with clang-14 clang-19 gcc
check-asan: setup
	@cmake -S . -B build-asan -DTG_ASAN=ON -DCMAKE_BUILD_TYPE=Debug > build-asan.log 2>&1 || { cat build-asan.log; exit 1; }
	@cmake --build build-asan -j $(JOBS) > build-asan.log 2>&1 || { cat build-asan.log; exit 1; }
	@rm -f build-asan.log
	@tools/run-tests build-asan
# what runs on threads, under ThreadSanitizer: the pool, queues of devices, loaders, captured functions, exchanges beside kernels
TSAN = test_cancel test_devices test_jit test_launch test_loader test_multitensor test_program test_shard test_shard_beside test_shard_random
check-tsan: setup
	@cmake -S . -B build-tsan -DTG_TSAN=ON -DCMAKE_BUILD_TYPE=RelWithDebInfo > build-tsan.log 2>&1 || { cat build-tsan.log; exit 1; }
	@cmake --build build-tsan -j $(JOBS) --target tg test_ranks $(TSAN) > build-tsan.log 2>&1 || { cat build-tsan.log; exit 1; }
	@rm -f build-tsan.log
	@tools/run-tests build-tsan one $(TSAN) && TG_TEST=exchanges_hide tools/run-tests build-tsan one test_ranks
check-arm64:   # cross-built for 64-bit Arm and run by qemu-aarch64, where these are here
	@JOBS=$(JOBS) tools/check-arm64 $(BUILD)-arm64; rc=$$?; [ $$rc -eq 0 ] || [ $$rc -eq 77 ]
check-macos:   # the library compiles for macOS, where clang is here
	@tools/check-macos; rc=$$?; [ $$rc -ne 77 ] || echo "not checked: no clang here compiles for macOS"; [ $$rc -eq 0 ] || [ $$rc -eq 77 ]
check-emu: all   # the devices CUDA and METAL on emulated GPUs, every access checked: tens of minutes
	@tools/check-emu $(BUILD)
bench: all   # operations, networks and training steps beside PyTorch, where Python has it: ms of both and their ratio; AGAINST=COMMIT: beside that commit's build
	@$(if $(AGAINST),tools/bench-against $(BUILD) $(AGAINST),tools/bench $(BUILD))
gpu-check:   # on a machine with a GPU: tests, random graphs beside INTERP and the emulator, figures beside PyTorch; one report in JSON
	@tools/gpu-check $(ARGS)
metal-check:   # the same on a Mac
	@tools/gpu-check --device METAL --out metal-check.json $(ARGS)
check-compilers: setup
	@tools/check-header && tools/check-compilers $(JOBS)
fuzz: all   # make fuzz T=30 SEED=7 N=400: random expressions, texts and programs against their oracles; N networks; 100,000 random calls under the sanitizers
	@$(BUILD)/fuzz --seconds $(or $(T),30) $(if $(SEED),--seed $(SEED))
	@FIRST=$(or $(SEED),$$(date +%s)) N=$(or $(N),400) $(BUILD)/test_networks
	@cmake -S . -B build-asan -DTG_ASAN=ON -DCMAKE_BUILD_TYPE=Debug > build-asan.log 2>&1 && cmake --build build-asan -j $(JOBS) --target fuzz_calls > build-asan.log 2>&1 || { cat build-asan.log; exit 1; }
	@rm -f build-asan.log
	@build-asan/fuzz_calls $(if $(SEED),--seed $(SEED))
torture: all
	@TG_TORTURE=1 $(BUILD)/test_faults && TG_TORTURE=1 $(BUILD)/test_nomem
clean:
	rm -rf build build-*
