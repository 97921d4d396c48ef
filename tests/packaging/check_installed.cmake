# cmake -DBUILD=DIR -DSCRATCH=DIR -P check_installed.cmake (install|deb)
math(EXPR last "${CMAKE_ARGC} - 1")
set(how "${CMAKE_ARGV${last}}")
set(root "${SCRATCH}/${how}")
file(REMOVE_RECURSE "${root}")
file(MAKE_DIRECTORY "${root}")

if(how STREQUAL "install")
  execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${root}/usr"
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
else()
  execute_process(COMMAND "${CMAKE_CPACK_COMMAND}" -G DEB -B "${root}" WORKING_DIRECTORY "${BUILD}"
                  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB package "${root}/lily_*.deb")
  execute_process(COMMAND dpkg-deb -x "${package}" "${root}" COMMAND_ERROR_IS_FATAL ANY)
endif()

# Neither a model of this user's nor the source tree may help.
execute_process(COMMAND "${CMAKE_COMMAND}" -E env --unset=LILY_MODEL "HOME=${root}" "XDG_DATA_HOME=${root}/none"
                        "${root}/usr/bin/lily" chat -p "What is a lighthouse?"
                WORKING_DIRECTORY / OUTPUT_VARIABLE answer COMMAND_ERROR_IS_FATAL ANY)
message("${answer}")
if(NOT answer MATCHES "tower")
  message(FATAL_ERROR "that is not the answer of the bundled model")
endif()
