# The CUDA device of the GPU engine. LILY_CUDA: ON (an nvcc of CUDA 12 or newer must be there), OFF, or AUTO: ON where there is both
# such an nvcc and a GPU, for that GPU alone. Where there is only nvcc, the target cuda_compile (and the test of that name) compiles
# what needs it for one architecture, so that it cannot rot on a machine without a GPU.
#
# Sets LILY_HAS_CUDA (build it in) and LILY_CHECK_CUDA (only compile it).
set(LILY_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO, ON or OFF")
set_property(CACHE LILY_CUDA PROPERTY STRINGS AUTO ON OFF)
set(LILY_HAS_CUDA OFF)
set(LILY_CHECK_CUDA OFF)

if(NOT LILY_CUDA STREQUAL "OFF" AND NOT CMAKE_CROSSCOMPILING AND NOT LILY_SANITIZE)
  find_program(LILY_NVCC nvcc HINTS ENV CUDACXX PATHS /usr/local/cuda/bin /opt/cuda/bin)
  set(nvcc_version 0)
  if(LILY_NVCC)
    execute_process(COMMAND "${LILY_NVCC}" --version OUTPUT_VARIABLE nvcc_text ERROR_QUIET)
    if(nvcc_text MATCHES "release ([0-9.]+)")
      set(nvcc_version "${CMAKE_MATCH_1}")
    endif()
  endif()
  if(nvcc_version VERSION_GREATER_EQUAL 12)
    if(LILY_CUDA STREQUAL "ON")
      set(LILY_HAS_CUDA ON)
      set(architectures "80-real;86-real;89-real;90-real;100-real;120")  # and PTX of the last for what comes
      if(nvcc_version VERSION_LESS 12.8)
        set(architectures "80-real;86-real;89-real;90")
      endif()
    elseif(EXISTS /dev/nvidiactl OR EXISTS /dev/dxg)
      set(LILY_HAS_CUDA ON)
      set(architectures native)
    else()
      set(LILY_CHECK_CUDA ON)
      set(architectures 90)
    endif()
  elseif(LILY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LILY_CUDA is ON, but there is no nvcc of CUDA 12 or newer (found: ${LILY_NVCC} ${nvcc_version}): "
                        "install the CUDA toolkit, or set LILY_NVCC to its nvcc")
  endif()
endif()

if(LILY_HAS_CUDA OR LILY_CHECK_CUDA)
  set(CMAKE_CUDA_COMPILER "${LILY_NVCC}")
  set(CMAKE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING "Architectures of NVIDIA GPUs to compile for")
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)  # one program for machines with CUDA and without
  find_package(CUDAToolkit REQUIRED)
endif()
