# Thin front of CMake. `make demo` and `make test` install what they need, build, and run.
BUILD ?= build
JOBS  ?= $(shell nproc)
.PHONY: all setup demo test check-rules check-asan check-compilers torture clean
all: setup
	@cmake -S . -B $(BUILD) -DCMAKE_BUILD_TYPE=RelWithDebInfo > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS) > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
setup:
	@tools/setup
demo: all
	@$(BUILD)/tg demo $(ARGS)
test: all
	@tools/run-tests $(BUILD)
check-rules: all
	@$(BUILD)/checkrules $(BUILD)/rules.verdicts
check-asan: setup
	@cmake -S . -B build-asan -DTG_ASAN=ON -DCMAKE_BUILD_TYPE=Debug > build-asan.log 2>&1 || { cat build-asan.log; exit 1; }
	@cmake --build build-asan -j $(JOBS) > build-asan.log 2>&1 || { cat build-asan.log; exit 1; }
	@rm -f build-asan.log
	@tools/run-tests build-asan
check-compilers: setup
	@tools/check-header && tools/check-compilers $(JOBS)
torture: all
	@TG_TORTURE=1 $(BUILD)/test_faults
clean:
	rm -rf build build-*
