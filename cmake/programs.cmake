# programs.cmake: what stands on the library: tg, the examples, the checks, the tests, the fuzzers.
foreach(optional PNG JPEG CURL EDIT MICROHTTPD)
  string(TOLOWER ${optional} library)
  if(${optional}_FOUND)
    string(APPEND TG_CLI_BUILT ", ${library} ${${optional}_VERSION}")
  else()
    string(APPEND TG_CLI_BUILT ", no ${library}")
  endif()
endforeach()
string(SUBSTRING "${TG_CLI_BUILT}" 2 -1 TG_CLI_BUILT)
set_source_files_properties(cli/info.c PROPERTIES COMPILE_DEFINITIONS "TG_CLI_BUILT=\"${TG_CLI_BUILT}\"")

# the pages of `tg serve` and `tg viz`, as bytes
foreach(name serve viz)
  file(READ cli/${name}_page.html page HEX)
  string(REGEX REPLACE "(..)" "0x\\1," page "${page}")
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/gen/${name}_page.c CONTENT "#include <stddef.h>
extern const unsigned char ${name}_page[];
extern const size_t ${name}_page_bytes;
const unsigned char ${name}_page[] = {${page}};
const size_t ${name}_page_bytes = sizeof ${name}_page;
")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS cli/${name}_page.html)
endforeach()
file(READ docs/tour.md page HEX)   # what `tg viz --tour` says, ended by a 0
string(REGEX REPLACE "(..)" "0x\\1," page "${page}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/gen/tour_text.c CONTENT "extern const char tour_text[];
const char tour_text[] = {${page}0};
")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS docs/tour.md)

# the rules, for the page of `tg viz`: of each file its name after a form feed, then its lines
set(text "")
file(GLOB rules CONFIGURE_DEPENDS rules/*.rules)
foreach(path ${rules})
  get_filename_component(name ${path} NAME)
  file(READ ${path} lines HEX)
  string(HEX "${name}\n" header)
  string(APPEND text "0c${header}${lines}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
endforeach()
string(REGEX REPLACE "(..)" "0x\\1," text "${text}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/gen/rules_text.c CONTENT "extern const char rules_text[];
const char rules_text[] = {${text}0};
")

file(GLOB CLI_SOURCES CONFIGURE_DEPENDS cli/*.c)
add_executable(tg ${CLI_SOURCES} ${CMAKE_BINARY_DIR}/gen/serve_page.c ${CMAKE_BINARY_DIR}/gen/viz_page.c
  ${CMAKE_BINARY_DIR}/gen/tour_text.c ${CMAKE_BINARY_DIR}/gen/rules_text.c)
target_compile_options(tg PRIVATE -UTG_NO_ORIGIN) # programs of its own tell where their operations come from
target_include_directories(tg PRIVATE cli .)
target_link_libraries(tg PRIVATE tinygrad_static)
foreach(optional PNG JPEG CURL EDIT MICROHTTPD)
  if(${optional}_FOUND)
    target_compile_definitions(tg PRIVATE TG_HAVE_${optional})
    target_link_libraries(tg PRIVATE PkgConfig::${optional})
  endif()
endforeach()

# the man page and the completions, from the tables of the commands
add_custom_command(OUTPUT tg.1 tg.bash tg.zsh tg.fish COMMAND tg manual > tg.1 COMMAND tg completion bash > tg.bash
  COMMAND tg completion zsh > tg.zsh COMMAND tg completion fish > tg.fish DEPENDS tg VERBATIM)
add_custom_target(tg_pages ALL DEPENDS tg.1)

install(TARGETS tg)
install(FILES ${CMAKE_BINARY_DIR}/tg.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/tg.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tg)
install(FILES ${CMAKE_BINARY_DIR}/tg.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _tg)
install(FILES ${CMAKE_BINARY_DIR}/tg.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# the README's example is compiled and run by the tests
file(READ README.md readme)
string(REGEX MATCH "#include <tg.h>[^`]*" readme_code "${readme}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/readme_example.c CONTENT "${readme_code}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS README.md)
add_executable(readme_example ${CMAKE_BINARY_DIR}/readme_example.c)
target_link_libraries(readme_example PRIVATE tinygrad_static)
target_compile_options(readme_example PRIVATE -UTG_NO_ORIGIN)

# and so is the program of docs/embedding.md
file(READ docs/embedding.md embedding)
string(REGEX MATCH "/\\* host.c[^`]*" embedding_code "${embedding}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/embedding_example.c CONTENT "${embedding_code}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS docs/embedding.md)
add_executable(embedding_example ${CMAKE_BINARY_DIR}/embedding_example.c)
target_link_libraries(embedding_example PRIVATE tinygrad_static)
target_compile_options(embedding_example PRIVATE -UTG_NO_ORIGIN)

# examples/: build/example_NAME; tests/unit/test_examples.c runs them
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
  set(CMAKE_CXX_STANDARD 17)
  file(GLOB CXX_EXAMPLES CONFIGURE_DEPENDS examples/*.cc)
endif()
file(GLOB EXAMPLES CONFIGURE_DEPENDS examples/*.c)
foreach(src ${EXAMPLES} ${CXX_EXAMPLES})
  get_filename_component(name ${src} NAME_WE)
  add_executable(example_${name} ${src})
  target_link_libraries(example_${name} PRIVATE tinygrad_static)
  target_compile_options(example_${name} PRIVATE -UTG_NO_ORIGIN)
  list(APPEND EXAMPLE_TARGETS example_${name})
endforeach()

# build/tg_abi.json: the headers as data, for bindings
add_executable(abi tools/abi.c)
add_custom_command(OUTPUT gen/abi_layout.c COMMAND abi ${TG_HEADERS} > gen/abi_layout.c DEPENDS abi ${TG_HEADERS} VERBATIM)
add_executable(abi_layout gen/abi_layout.c)
target_include_directories(abi_layout PRIVATE include nn io llm)
target_compile_definitions(abi_layout PRIVATE TG_ABI_VERSION="${PROJECT_VERSION}")
add_custom_command(OUTPUT tg_abi.json COMMAND abi_layout > tg_abi.json DEPENDS abi_layout VERBATIM)
add_custom_target(abi_json ALL DEPENDS tg_abi.json)
install(FILES ${CMAKE_BINARY_DIR}/tg_abi.json DESTINATION ${CMAKE_INSTALL_DATADIR}/tinygrad)
if(TG_ASAN)
  target_compile_options(abi PRIVATE -fno-sanitize=all)
  target_link_options(abi PRIVATE -fno-sanitize=all)
endif()

# docs/api-parity.md: make parity writes it, the tests check it
add_executable(parity tools/parity.c)

enable_testing()
if(CMOCKA_FOUND)
  file(GLOB UNIT_TESTS CONFIGURE_DEPENDS tests/unit/test_*.c tests/docs/test_*.c tests/device/test_*.c tests/faults/test_*.c)
  foreach(src ${UNIT_TESTS})
    get_filename_component(name ${src} NAME_WE)
    add_executable(${name} ${src})
    target_include_directories(${name} PRIVATE src . tests llm)
    target_link_libraries(${name} PRIVATE tinygrad_static PkgConfig::CMOCKA)
    target_compile_definitions(${name} PRIVATE TG_RULEGEN="$<TARGET_FILE:rulegen>" TG_TESTS="${CMAKE_SOURCE_DIR}/tests")
    add_dependencies(${name} rulegen)
    if(SQLITE_FOUND)
      target_compile_definitions(${name} PRIVATE TG_HAVE_SQLITE)
    endif()
  endforeach()
  foreach(name test_choices test_nomem test_grid_cost test_offsets)
    target_sources(${name} PRIVATE tests/kernels/choices.c)
  endforeach()
  foreach(name test_kernels test_nvrtc test_texts test_emulate)                        # what looks at kernels as text
    target_sources(${name} PRIVATE tests/kernels/golden.c)
    target_include_directories(${name} PRIVATE tests cli)
    target_compile_definitions(${name} PRIVATE TG_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    target_link_libraries(${name} PRIVATE ${CMAKE_DL_LIBS})
    if(name MATCHES "nvrtc|texts")
      target_sources(${name} PRIVATE tests/kernels/texts.c cli/programs.c)
    endif()
  endforeach()
  add_executable(export_machines tests/export/machines.c tests/export/trained.c)   # run by tests/export/check-machines
  target_include_directories(export_machines PRIVATE src . tests)
  target_link_libraries(export_machines PRIVATE tinygrad_static PkgConfig::CMOCKA)
  target_compile_definitions(export_machines PRIVATE TG_TESTS="${CMAKE_SOURCE_DIR}/tests")
  foreach(name test_export test_export_nodes test_export_nets test_onnx_integers export_machines)   # C that was written, compiled and loaded
    target_sources(${name} PRIVATE tests/export/exported.c tests/export/nodes.c
      tests/export/cases.c tests/export/checked.c
      tests/export/qdq.c tests/export/nets.c)
    target_link_libraries(${name} PRIVATE ${CMAKE_DL_LIBS})
  endforeach()
  file(GLOB NETWORKS CONFIGURE_DEPENDS tests/networks/*.c)   # random networks
  target_sources(test_networks PRIVATE ${NETWORKS})
  target_compile_definitions(test_networks PRIVATE TG_TOOLS="${CMAKE_SOURCE_DIR}/tools")
  target_sources(test_ptx PRIVATE tests/ptx/ptx_read.c tests/ptx/ptx_run.c)   # PTX, run on this CPU
  target_link_libraries(test_ptx PRIVATE m)
  target_compile_definitions(test_examples PRIVATE TG_BINARIES="${CMAKE_BINARY_DIR}")
  add_dependencies(test_examples ${EXAMPLE_TARGETS} embedding_example)
  target_sources(test_nn PRIVATE cli/train_tasks.c cli/text.c)   # the networks of `tg train`
  target_include_directories(test_nn PRIVATE cli)
  target_sources(test_boxes PRIVATE cli/boxes.c cli/draw.c)
  target_sources(test_explain_kernel PRIVATE cli/explain_kernel.c)
  target_include_directories(test_explain_kernel PRIVATE cli)
  target_sources(test_train_pictures PRIVATE cli/train_pictures.c cli/draw.c cli/picture.c cli/exif.c cli/terminal.c cli/text.c)
  target_include_directories(test_train_pictures PRIVATE cli)
  target_sources(test_picture PRIVATE cli/picture.c cli/exif.c cli/terminal.c cli/text.c)
  target_include_directories(test_picture PRIVATE cli)
  foreach(optional PNG JPEG)
    if(${optional}_FOUND)
      target_compile_definitions(test_picture PRIVATE TG_HAVE_${optional})
      target_link_libraries(test_picture PRIVATE PkgConfig::${optional})
    endif()
  endforeach()
  target_include_directories(test_boxes PRIVATE cli)
  target_compile_definitions(test_cli PRIVATE TG_BINARY="$<TARGET_FILE:tg>")
  add_dependencies(test_cli tg)
  target_compile_definitions(test_hub PRIVATE TG_BINARY="$<TARGET_FILE:tg>")
  add_dependencies(test_hub tg)
  target_compile_definitions(test_bisect PRIVATE TG_BINARY="$<TARGET_FILE:tg>")
  target_compile_definitions(test_ranks PRIVATE TG_BINARY="$<TARGET_FILE:tg>" TG_TCP="$<TARGET_FILE:tg_tcp>")   # runs itself under `tg launch`
  add_dependencies(test_ranks tg tg_tcp)
  add_dependencies(test_bisect tg)
  target_compile_definitions(test_abi PRIVATE TG_ABI="${CMAKE_BINARY_DIR}/tg_abi.json" TG_LIBRARY="$<TARGET_FILE:tinygrad>")
  target_link_libraries(test_abi PRIVATE ${CMAKE_DL_LIBS})
  target_compile_definitions(test_options PRIVATE TG_ABI="${CMAKE_BINARY_DIR}/tg_abi.json")
  add_dependencies(test_options abi_json)
  add_dependencies(test_abi tinygrad abi_json)
  add_custom_command(OUTPUT gen/language.c COMMAND rulegen ${CMAKE_SOURCE_DIR}/tests/rules/language.rules gen/language.c
    DEPENDS rulegen tests/rules/language.rules VERBATIM)
  target_sources(test_passes PRIVATE gen/language.c)
  target_include_directories(test_passes PRIVATE tests ${CMAKE_BINARY_DIR})   # gen/rule_files.def
  target_sources(test_counts PRIVATE cli/programs.c tests/kernels/choices.c) # the programs that `tg bench lower` measures
  target_include_directories(test_counts PRIVATE cli)
endif()

# how near the chosen lists of opts are to the best that is found, by time on this CPU
add_executable(near_best tests/kernels/near_best.c tests/kernels/choices.c)
target_include_directories(near_best PRIVATE src . tests)
target_link_libraries(near_best PRIVATE tinygrad_static)

add_executable(fuzz tests/fuzz/fuzz.c tests/fuzz/files.c tests/fuzz/memory.c tests/fuzz/programs.c tests/export/exported.c)
target_include_directories(fuzz PRIVATE src . tests)
target_link_libraries(fuzz PRIVATE tinygrad_static ${CMAKE_DL_LIBS})

# every function with random arguments: the calls are written from tg_abi.json
add_executable(callgen tests/fuzz/callgen.c)
target_include_directories(callgen PRIVATE .)
add_custom_command(OUTPUT gen/api_calls.c COMMAND callgen tg_abi.json > gen/api_calls.c DEPENDS callgen tg_abi.json VERBATIM)
add_executable(fuzz_calls tests/fuzz/calls.c gen/api_calls.c)
target_include_directories(fuzz_calls PRIVATE . src)
target_link_libraries(fuzz_calls PRIVATE tinygrad_static)
add_dependencies(fuzz_calls abi_json)

# make check-rules: every rule evaluated and proved, every wrong rule refuted
add_custom_command(OUTPUT gen/check_wrong.c COMMAND rulegen --check ${CMAKE_SOURCE_DIR}/tests/rules/wrong.rules gen/check_wrong.c
  DEPENDS rulegen tests/rules/wrong.rules VERBATIM)
add_executable(checkrules tools/checkrules.c ${CHECK_SOURCES} gen/check_wrong.c)
target_include_directories(checkrules PRIVATE src tools ${CMAKE_BINARY_DIR})
target_link_libraries(checkrules PRIVATE tinygrad_static)
