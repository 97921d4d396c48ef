# -O3 is for the kernels, which ask for it themselves: elsewhere it only makes the first build longer.
string(REPLACE "-O3" "-O2" CMAKE_CXX_FLAGS_RELEASE "${CMAKE_CXX_FLAGS_RELEASE}")

# One static library a room. A room's sources are the files of its folder, so adding a file needs no edit here.
add_library(lily_flags INTERFACE)
set(warnings -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND warnings -Wno-restrict)  # "a" + std::string("b") sets it off (GCC bug 105651)
endif()
target_compile_options(lily_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>")  # nvcc knows few of them
target_include_directories(lily_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
if(LILY_SANITIZE)
  target_compile_options(lily_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(lily_flags INTERFACE -fsanitize=address,undefined)
endif()
if(LILY_FUZZ)
  target_compile_options(lily_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# lily_room(<name> [LINK <libraries>...]): the library lily_<name> from every .cpp below the current folder.
function(lily_room name)
  cmake_parse_arguments(ROOM "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "*.cpp" "*.h")
  list(FILTER sources EXCLUDE REGEX "/main/main.cpp$")
  add_library(lily_${name} STATIC ${sources})
  set_target_properties(lily_${name} PROPERTIES LINKER_LANGUAGE CXX)  # a room may hold only headers
  target_link_libraries(lily_${name} PUBLIC lily_flags ${ROOM_LINK})
endfunction()
